// Rotary positions in config.json: transformers 5 writes rope_parameters, earlier versions
// rope_theta and rope_scaling, GPT-NeoX keys of its own.
#include <nlohmann/json.hpp>

#include "models/hf_document.h"

namespace bloomery {
namespace {

using Kind = RotaryScaling::Kind;

struct KindName {
  const char* theirs;
  Kind kind;
};
constexpr KindName kKinds[] = {{"default", Kind::none},
                               {"linear", Kind::linear},
                               {"dynamic", Kind::dynamic},
                               {"llama3", Kind::llama3},
                               {"yarn", Kind::yarn}};

constexpr double kMost = 1e12;

Kind read_kind(HfConfig::Json& json, const HfDocument& object) {
  const auto found = object.contains("rope_type") ? object.find("rope_type") : object.find("type");
  if (found == object.end() || found->is_null()) {
    return Kind::none;
  }
  for (const KindName& known : kKinds) {
    if (*found == known.theirs) {
      return known.kind;
    }
  }
  json.require(false, "rope_type", *found, "this kind of rotary positions is not supported");
  return Kind::none;
}

void read_scaling(HfConfig::Json& json, const HfDocument& object, PositionOptions& p) {
  RotaryScaling& s = p.scaling;
  s = {.kind = read_kind(json, object)};
  const auto number = [&](const char* key, double otherwise) {
    return json.number(object, key, otherwise, 0, kMost);
  };
  const auto length = static_cast<double>(p.max_length);
  const double original = number("original_max_position_embeddings", length);
  s.original_length = static_cast<std::int64_t>(
      s.kind == Kind::dynamic
          ? length
          : json.number(json.document, "original_max_position_embeddings", original, 1, kMost));
  const bool stretches = s.kind != Kind::none;
  s.factor = stretches ? number("factor", length / static_cast<double>(s.original_length)) : 1;
  json.require(!stretches || s.factor > 0, "factor", s.factor, "must be above 0");
  s.low_frequency_factor = number("low_freq_factor", 1);
  s.high_frequency_factor = number("high_freq_factor", 4);
  s.beta_fast = number("beta_fast", 32);
  s.beta_slow = number("beta_slow", 1);
  s.attention_factor = number("attention_factor", 0);
  s.mscale = number("mscale", 0);
  s.mscale_all_dim = number("mscale_all_dim", 0);
  const auto truncate = object.find("truncate");
  s.truncate = truncate == object.end() || *truncate != false;
  if (s.kind == Kind::none) {
    s = {};
  }
}

HfDocument written_scaling(const RotaryScaling& s) {
  HfDocument object = nullptr;
  for (const KindName& known : kKinds) {
    if (s.kind != Kind::none && s.kind == known.kind) {
      object = {{"rope_type", known.theirs}, {"factor", s.factor}};
    }
  }
  if (s.kind == Kind::llama3 || s.kind == Kind::yarn) {
    object["original_max_position_embeddings"] = s.original_length;
  }
  if (s.kind == Kind::llama3) {
    object["low_freq_factor"] = s.low_frequency_factor;
    object["high_freq_factor"] = s.high_frequency_factor;
  }
  if (s.kind == Kind::yarn) {
    object["beta_fast"] = s.beta_fast;
    object["beta_slow"] = s.beta_slow;
    object["truncate"] = s.truncate;
    for (const auto& [key, value] : {std::pair{"attention_factor", s.attention_factor},
                                     {"mscale", s.mscale},
                                     {"mscale_all_dim", s.mscale_all_dim}}) {
      if (value > 0) {
        object[key] = value;
      }
    }
  }
  return object;
}

}  // namespace

void HfConfig::rotary(PositionOptions& p, const RotaryKeys& keys) {
  if (!reading()) {
    json_->document[keys.base] = p.rotary_base;
    json_->document["rope_scaling"] = written_scaling(p.scaling);
    if (keys.fraction != nullptr) {
      json_->document[keys.fraction] = p.rotary_fraction;
    }
    return;
  }
  const HfDocument old = json_->find({"rope_scaling"});
  HfDocument object = old.is_object() ? old : json_->find({"rope_parameters"});
  object = object.is_object() ? object : HfDocument::object();
  for (const auto& [key, value] : object.items()) {
    json_->require(!value.is_object(), key.c_str(), value,
                   "rotary positions that differ between layers are not supported");
  }
  json_->require(!object.contains("mrope_section"), "mrope_section", object,
                 "positions of several dimensions are not supported");
  const double base = json_->number(json_->document, keys.base, 10000, 1e-9, 1e15);
  p.rotary_base = json_->number(object, "rope_theta", base, 1e-9, 1e15);
  double fraction = keys.default_fraction;
  if (keys.fraction != nullptr) {
    fraction = json_->number(json_->document, keys.fraction, fraction, 0, 1);
  }
  p.rotary_fraction = json_->number(object, "partial_rotary_factor", fraction, 0, 1);
  read_scaling(*json_, object, p);
}

}  // namespace bloomery
