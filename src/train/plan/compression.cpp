#include "train/plan/compression.h"

#include <regex>

#include "base/findings.h"
#include "config/json_fields.h"
#include "models/family.h"
#include "train/plan/plan.h"

namespace bloomery {
namespace {

// An entry of different_groups.
struct Group {
  JsonFields parameters;
  std::string place;
  std::vector<std::string> patterns;
};

std::vector<Group> groups_of(const std::string& text, const std::string& place) {
  const JsonFields all(text.empty() ? "{}" : text, place);
  std::vector<Group> groups;
  for (const auto& [name, fields] : all.members<JsonFields>()) {
    fields.refuse_others({"params", "modules", "related_modules"});
    Group group{fields.get<JsonFields>("params"), fields.place(), {}};
    if (fields.kind("modules") == JsonFields::Kind::list) {
      group.patterns = fields.get<std::vector<std::string>>("modules");
    } else {
      const std::string word = fields.find<std::string>("modules").value_or("*");
      group.patterns = {word == "*" ? "" : word};  // DeepSpeed's word for all
    }
    groups.push_back(std::move(group));
  }
  all.require(!groups.empty(),
              "name groups: {\"NAME\": {\"params\": {...}, \"modules\": [\"encoder.layers\"]}}");
  return groups;
}

int bits_of(const JsonFields& fields, const char* name, int least, int most) {
  const auto bits = fields.get<int>(name);
  fields.require(bits >= least && bits <= most, name, " is ", bits, ", not from ", least, " to ",
                 most);
  return bits;
}

WeightGrid weight_grid(const CompressionFlags::Weights& o, const Group& group) {
  constexpr int kLeast = 3, kMost = 16;  // two bits and one are no grids there
  const JsonFields& fields = group.parameters;
  fields.refuse_others({"start_bits", "target_bits", "quantization_period"});
  const WeightGrid grid{.groups = o.groups,
                        .symmetric = o.type == "symmetric",
                        .start_bits = bits_of(fields, "start_bits", kLeast, kMost),
                        .target_bits = bits_of(fields, "target_bits", kLeast, kMost),
                        .period = fields.find<std::int64_t>("quantization_period").value_or(1),
                        .offset = o.offset,
                        .at_once = o.in_forward};
  fields.require(grid.period >= 1, "quantization_period must be at least 1");
  fields.require(grid.start_bits >= grid.target_bits, "start_bits ", grid.start_bits,
                 " are fewer than target_bits ", grid.target_bits);
  return grid;
}

InputGrid input_grid(const CompressionFlags::Inputs& o, const Group& group) {
  group.parameters.refuse_others({"bits"});
  const int bits = bits_of(group.parameters, "bits", 4, 8);
  group.parameters.require(bits == 4 || bits == 8, "bits must be 4 or 8, as in DeepSpeed");
  return {.bits = bits, .symmetric = o.type == "symmetric", .offset = o.offset};
}

std::string with_layer(std::string_view name, std::int64_t layer) {
  std::string made(name);
  made.replace(made.find('#'), 1, std::to_string(layer));
  return made;
}

// The linear layers in blocks: names of their weights, and of the modules in Megatron.
std::vector<std::pair<std::string, std::string>> linear_layers(const ModelOptions& model) {
  constexpr std::string_view kWeight = ".weight";
  std::vector<std::pair<std::string, std::string>> all;
  for (const MegatronTensor& each : find_family(model.family).megatron.tensors) {
    if (each.ours.find('#') == std::string_view::npos || !each.ours.ends_with(kWeight) ||
        each.cut == MegatronTensor::kWhole) {
      continue;
    }
    for (std::int64_t layer = 0; layer < model.num_layers; ++layer) {
      std::string theirs = with_layer(each.theirs, layer);
      theirs.resize(theirs.size() - kWeight.size());
      all.emplace_back(with_layer(each.ours, layer), std::move(theirs));
    }
  }
  return all;
}

// Calls `take` with each layer that a pattern of the group names.
template <class Take>
void for_named(const Group& group, const ModelOptions& model, const Take& take) {
  for (const std::string& pattern : group.patterns) {
    bool any = false;
    try {
      const std::regex expression(pattern);
      for (const auto& [ours, theirs] : linear_layers(model)) {
        if (std::regex_search(theirs, expression)) {
          any = true;
          take(ours);
        }
      }
    } catch (const std::regex_error&) {
      throw Error(concat(group.place, ": modules: \"", pattern, "\" is no regular expression"));
    }
    check(any, group.place, ": modules: \"", pattern,
          "\" is in the name of no linear layer; they are as "
          "language_model.encoder.layers.0.self_attention.query_key_value");
  }
}

}  // namespace

GridsOfWeights grids_of_weights(const CompressionFlags& flags, const ModelOptions& model) {
  const std::string place = "compression_training";
  GridsOfWeights grids;
  if (flags.weights.enabled) {
    for (const Group& group :
         groups_of(flags.weights.modules, place + ".weight_quantization.different_groups")) {
      const WeightGrid grid = weight_grid(flags.weights, group);
      for_named(group, model, [&](const std::string& name) {
        std::optional<WeightGrid>& to = grids[name].weight;
        to = to.value_or(grid);
      });
    }
  }
  if (flags.inputs.enabled) {
    for (const Group& group :
         groups_of(flags.inputs.modules, place + ".activation_quantization.different_groups")) {
      const InputGrid grid = input_grid(flags.inputs, group);
      for_named(group, model, [&](const std::string& name) {
        std::optional<InputGrid>& to = grids[name].input;
        to = to.value_or(grid);
      });
    }
  }
  if (flags.weights.enabled) {
    const Model whole(model, Mesh::single(), DType::fp32);
    for (const Parameter* each : whole.parameters()) {
      if (const auto found = grids.find(each->name); found != grids.end()) {
        group_places(each->name, each->box, flags.weights.groups);  // are equal
      }
    }
  }
  return grids;
}

std::vector<std::string> compression_problems(const PretrainOptions& o) {
  Findings f;
  if (!o.compression.enabled()) {
    return f.found;
  }
  const std::string name = "compression_training";
  f.require(!o.model.moe.any(), name, ": the layers of experts have no grids; leave it out");
  f.require(!o.model.adapter.enabled, name,
            ": it changes weights that stay as they are beside --lora; leave one of them out");
  f.require(o.precision.fp8.format == Fp8Flags::Format::none, name,
            " and --fp8-format exclude each other: both say in what layers compute");
  f.require(!offload_options(o.offload, o.parallel.chunks).any() || !o.compression.weights.enabled,
            name,
            ": weight_quantization needs weights and the optimizer's state on the device; leave "
            "out what keeps them elsewhere");
  f.require(!o.compression.inputs.enabled || o.compression.inputs.calibration == "static", name,
            ".activation_quantization: range_calibration must be \"static\"; \"dynamic\", "
            "DeepSpeed's default, is not built");
  return f.found;
}

}  // namespace bloomery
