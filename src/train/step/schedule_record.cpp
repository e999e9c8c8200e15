#include "train/step/schedule_record.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/json_fields.h"

namespace bloomery {
namespace {

using nlohmann::json;

template <class T>
json optional_json(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

constexpr std::array kStyles = {"constant", "linear", "cosine", "inverse-square-root"};

std::string style_name(WeightDecayStyle style) {  // those begin alike
  return kStyles.at(static_cast<std::size_t>(style));
}

}  // namespace

std::string style_name(DecayStyle style) { return kStyles.at(static_cast<std::size_t>(style)); }

std::string to_json(const ScheduleOptions& o) {
  return json{{"learning_rate", o.learning_rate},
              {"min_learning_rate", o.min_learning_rate},
              {"decay_style", static_cast<int>(o.decay_style)},
              {"train_length", o.train_length},
              {"decay_length", optional_json(o.decay_length)},
              {"warmup_length", o.warmup_length},
              {"warmup_fraction", optional_json(o.warmup_fraction)},
              {"weight_decay", o.weight_decay},
              {"start_weight_decay", optional_json(o.start_weight_decay)},
              {"end_weight_decay", optional_json(o.end_weight_decay)},
              {"weight_decay_style", static_cast<int>(o.weight_decay_style)},
              {"samples_per_unit", o.samples_per_unit}}
      .dump();
}

ScheduleOptions schedule_from_json(std::string_view text, const std::string& place) {
  const JsonFields from(text, place + ": damaged: its schedule cannot be read");
  ScheduleOptions o;
  from.read("learning_rate", o.learning_rate);
  from.read("min_learning_rate", o.min_learning_rate);
  from.read_enum("decay_style", o.decay_style, DecayStyle::inverse_square_root);
  from.read("train_length", o.train_length);
  from.read("decay_length", o.decay_length);
  from.read("warmup_length", o.warmup_length);
  from.read("warmup_fraction", o.warmup_fraction);
  from.read("weight_decay", o.weight_decay);
  from.read("start_weight_decay", o.start_weight_decay);
  from.read("end_weight_decay", o.end_weight_decay);
  from.read_enum("weight_decay_style", o.weight_decay_style, WeightDecayStyle::cosine);
  from.read("samples_per_unit", o.samples_per_unit);
  return o;
}

std::vector<std::string> schedule_differences(const ScheduleOptions& here,
                                              const ScheduleOptions& stored) {
  const Schedule a = make_schedule(here), b = make_schedule(stored);
  std::vector<std::string> found;
  const auto compare = [&found](const char* what, auto x, auto y) {
    if (x != y) found.push_back(concat(what, ": ", x, " here, ", y, " in the checkpoint"));
  };
  compare("peak learning rate", a.max_rate, b.max_rate);
  compare("lowest learning rate", a.min_rate, b.min_rate);
  compare("samples of warm-up", a.warmup, b.warmup);
  compare("samples of decay", a.decay, b.decay);
  compare("decay style", style_name(a.decay_style), style_name(b.decay_style));
  compare("weight decay at the start", a.start_weight_decay, b.start_weight_decay);
  compare("weight decay at the end", a.end_weight_decay, b.end_weight_decay);
  compare("weight decay style", style_name(a.weight_decay_style), style_name(b.weight_decay_style));
  if (a.weight_decay_style != WeightDecayStyle::constant) {
    compare("samples of growing weight decay", a.weight_decay_length, b.weight_decay_length);
  }
  return found;
}

}  // namespace bloomery
