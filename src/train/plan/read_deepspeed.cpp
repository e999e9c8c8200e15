#include "train/plan/read_deepspeed.h"

#include "base/error.h"
#include "base/file.h"

namespace bloomery {
namespace {

using Notes = std::vector<std::string>;

// An option that DeepSpeed takes from its configuration alone: what that leaves out is its default.
template <class T>
void take_deepspeed_default(const OptionTable& table, const char* name, T& field, T value,
                            const std::string& meaning, Notes& notes) {
  const std::optional<OptionRow::Given>& given = table.row(name).given;
  if (given && given->source == OptionRow::Source::deepspeed) {
    return;
  }
  if (field != value) {
    notes.push_back(concat("DeepSpeed's configuration does not set it: ", meaning,
                           given ? concat(", and ", given->place, " has no effect") : ""));
  }
  field = value;
}

void apply_deepspeed_defaults(const OptionTable& table, PretrainOptions& o, Notes& notes) {
  take_deepspeed_default(table, "clip-grad", o.update.clip, 0.0, "gradients are not clipped",
                         notes);
  PrecisionOptions& p = o.precision;
  if (p.dtype != DType::fp16) {
    return;
  }
  take_deepspeed_default<std::optional<double>>(table, "loss-scale", p.loss_scale, std::nullopt,
                                                "the loss scale is dynamic", notes);
  take_deepspeed_default(table, "min-loss-scale", p.min_loss_scale, 1.0,
                         "the loss scale falls to 1 at most", notes);
  take_deepspeed_default(table, "loss-scale-window", p.window, 1000.0,
                         "the loss scale grows after 1000 steps", notes);
  take_deepspeed_default<std::int64_t>(table, "hysteresis", p.hysteresis, 2,
                                       "two overflows halve the loss scale", notes);
  take_deepspeed_default(table, "consecutive-hysteresis", p.consecutive_hysteresis, false,
                         "clean steps do not forgive overflows", notes);
  p.stop_at_min_scale = p.stop_at_min_scale || !table.given("stop-at-min-loss-scale");
  if (table.given("initial-loss-scale")) {
    notes.push_back(
        "--initial-loss-scale has no effect with --deepspeed, which starts at 2 to "
        "the power of fp16.initial_scale_power, or 16");
  }
  if (!p.initial_scale_power) {
    p.initial_scale_power = 16;
  }
}

// DeepSpeed's switches of what is logged stand for flags.
void apply_monitors(LoggingOptions& o) {
  if (o.wall_clock_breakdown) {
    o.timing_level = 2;
  }
  if (o.comms_logger && o.profile == "none") {
    o.profile = "pt";
  }
}

}  // namespace

void read_deepspeed(OptionTable& table, PretrainOptions& o, std::vector<std::string>& notes) {
  apply_monitors(o.logging);
  if (!o.deepspeed) {
    if (!o.deepspeed_config.empty()) {
      notes.push_back(concat("--deepspeed_config ", o.deepspeed_config,
                             " is not read without --deepspeed, as in Megatron-DeepSpeed"));
    }
    return;
  }
  check(!o.deepspeed_config.empty(), "--deepspeed needs --deepspeed_config FILE");
  table.read_deepspeed(read_file(o.deepspeed_config), o.deepspeed_config);
  apply_monitors(o.logging);
  apply_deepspeed_defaults(table, o, notes);
}

void apply_batch_flags(const OptionTable& table, PretrainOptions& o,
                       std::vector<std::string>& notes) {
  const auto& global = table.row("global-batch-size").given;
  const auto& steps = table.row("gradient-accumulation-steps").given;
  const auto from_json = [](const std::optional<OptionRow::Given>& given) {
    return given && given->source == OptionRow::Source::deepspeed;
  };
  if (!from_json(steps) || !global || from_json(global) || o.batch.micro < 1) {
    return;
  }
  if (*o.batch.accumulation * o.batch.micro * o.parallel.data_ranks() != *o.batch.global) {
    notes.push_back(concat(global->place, " = ", global->value, " overrules ", steps->place, " = ",
                           steps->value));
    o.batch.accumulation.reset();
  }
}

}  // namespace bloomery
