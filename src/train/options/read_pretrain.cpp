#include "train/options/read_pretrain.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/stored_model.h"
#include "models/record.h"
#include "train/options/model_sizes.h"

namespace bloomery {
namespace {

using Notes = std::vector<std::string>;

// The preset fills what no flag gives.
void apply_model_size(PretrainOptions& o, const Environment& environment, Notes& notes) {
  std::string place = "--model-size";
  if (o.model_size.empty() && environment.model_size_key) {
    o.model_size = *environment.model_size_key;
    place = "MODEL_SIZE_KEY";
  }
  if (o.model_size.empty()) {
    return;
  }
  const ModelSize& size = find_model_size(o.model_size);
  const auto fill = [&](std::int64_t& field, std::int64_t value, const char* flag) {
    if (field != 0 && field != value) {
      notes.push_back(
          concat(flag, " ", field, " counts, not the ", value, " of ", place, " ", size.name));
    }
    field = field != 0 ? field : value;
  };
  fill(o.model.num_layers, size.num_layers, "--num-layers");
  fill(o.model.hidden_size, size.hidden_size, "--hidden-size");
  fill(o.model.attention.num_heads, size.num_attention_heads, "--num-attention-heads");
}

// An option that DeepSpeed takes from its configuration alone: what that leaves out is its default.
template <class T>
void take_deepspeed_default(const OptionTable& table, const char* name, T& field, T value,
                            const std::string& meaning, Notes& notes) {
  const std::optional<OptionRow::Given>& given = table.row(name).given;
  if (given && given->source == OptionRow::Source::deepspeed) {
    return;
  }
  if (field != value) {
    notes.push_back(concat("the DeepSpeed configuration does not say it: ", meaning,
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

void read_deepspeed(OptionTable& table, PretrainOptions& o, Notes& notes) {
  if (!o.deepspeed) {
    if (!o.deepspeed_config.empty()) {
      notes.push_back(concat("--deepspeed_config ", o.deepspeed_config,
                             " is not read without --deepspeed, as in Megatron-DeepSpeed"));
    }
    return;
  }
  check(!o.deepspeed_config.empty(), "--deepspeed needs --deepspeed_config FILE");
  table.read_deepspeed(read_file(o.deepspeed_config), o.deepspeed_config);
  apply_deepspeed_defaults(table, o, notes);
}

// --load-tag names one checkpoint of --load.
void apply_load_tag(CheckpointFlags& o) {
  if (o.load_tag.empty()) {
    return;
  }
  check(!o.load.empty(), "--load-tag ", o.load_tag, " needs --load FOLDER");
  const std::size_t digits = o.load_tag.find_last_not_of("0123456789") + 1;
  const std::string prefix = o.load_tag.substr(0, digits);
  check(digits < o.load_tag.size() &&
            (prefix.empty() || prefix == "step-" || prefix == "global_step"),
        "--load-tag ", o.load_tag,
        ": give the number of a step, as 100, step-100 or "
        "global_step100");
  o.load = (std::filesystem::path(o.load) / ("step-" + o.load_tag.substr(digits))).string();
  check(std::filesystem::exists(o.load), "--load-tag ", o.load_tag, ": there is no ", o.load);
}

// The model of --load in place of flags. Its tokenizer too, where none is named.
void take_stored_model(OptionTable& table, PretrainOptions& o, Notes& notes) {
  const CheckpointFlags& flags = o.checkpoint;
  if (flags.load.empty() || !(flags.use_checkpoint_args || is_hf_folder(flags.load))) {
    return;
  }
  const std::optional<ModelRecord> stored = stored_model(flags.load);
  if (!stored) {
    return;
  }
  const auto has_own = [](const std::string& family) {
    return find_family(family).describe != nullptr;
  };
  const std::string& family = stored->model.family;
  check(family == o.model.family || (!has_own(family) && !has_own(o.model.family)), flags.load,
        " holds a model of the family ", family, ": give --model-family ", family);
  o.model.family = family;
  read_record(table, stored->model, flags.load);
  o.model.vocabulary.size = stored->model.vocabulary.size;
  notes.insert(notes.end(), stored->notes.begin(), stored->notes.end());
  if (stored->tokenizer && !names_tokenizer(o.tokenizer)) {
    o.tokenizer = *stored->tokenizer;
  }
}

// Megatron-LM names the kind of positions, for which Megatron-DeepSpeed and we have flags.
std::vector<std::string> with_flags_of_positions(std::vector<std::string> arguments) {
  const std::map<std::string, std::string> flags = {{"rope", "--use-rotary-position-embeddings"},
                                                    {"learned_absolute", "--position-embedding"},
                                                    {"none", "--no-position-embedding"}};
  const auto found = std::ranges::find(arguments, "--position-embedding-type");
  const auto word = found == arguments.end() ? found : std::next(found);
  if (word != arguments.end() && flags.contains(*word)) {
    *found = flags.at(*word);
    arguments.erase(word);
  }
  return arguments;
}

void apply_tokenizer_default(TokenizerOptions& o) {
  if (o.path.empty() && o.type.empty() && !o.vocab_file.empty()) {
    o.type = "GPT2BPETokenizer";  // what pretrain_gpt takes when none is named
  }
}

void add_notes(const OptionTable& table, const PretrainOptions& o, Notes& notes) {
  for (const char* flag : {"fp8-margin", "fp8-interval", "fp8-amax-history-len",
                           "fp8-amax-compute-algo", "fp8-recipe", "fp8-wgrad"}) {
    if (o.precision.fp8.format == Fp8Flags::Format::none && table.given(flag)) {
      notes.push_back(concat("--", flag, " has no effect without --fp8-format"));
    }
  }
  if (o.precision.dtype != DType::fp16 && o.precision.loss_scale.value_or(1) > 1) {
    notes.push_back(concat("--loss-scale ", *o.precision.loss_scale,
                           " has no effect: only fp16 needs a loss scale"));
  }
  if (o.checkpoint.save.empty()) {
    notes.push_back("without --save no checkpoint is written");
  }
}

}  // namespace

Environment read_environment(int processes) {
  const char* const key = std::getenv("MODEL_SIZE_KEY");
  Environment environment{.processes = processes};
  if (key != nullptr && *key != '\0') {
    environment.model_size_key = key;
  }
  return environment;
}

std::vector<std::string> read_pretrain(OptionTable& table, PretrainOptions& options,
                                       const std::vector<std::string>& arguments,
                                       const Environment& environment) {
  Notes notes;
  table.read_flags(with_flags_of_positions(arguments));
  std::vector<std::string> further;
  try {
    read_deepspeed(table, options, notes);
    apply_model_size(options, environment, notes);
    apply_load_tag(options.checkpoint);
    take_stored_model(table, options, notes);
  } catch (const Error& error) {
    further.push_back(error.what());
  }
  apply_tokenizer_default(options.tokenizer);
  options.parallel.processes = environment.processes;
  if (table.problems().empty() && further.empty()) {
    further = problems(options);  // of values that were read, not of defaults in their stead
  }
  table.finish(further);
  add_notes(table, options, notes);
  notes.insert(notes.begin(), table.notes().begin(), table.notes().end());
  return notes;
}

}  // namespace bloomery
