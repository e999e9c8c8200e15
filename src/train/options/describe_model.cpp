#include "config/option_table.h"
#include "train/options/pretrain_options.h"

namespace bloomery {
namespace {

constexpr const char* kFamily = "model-family";

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family* family : families()) {
    names.emplace_back(family->name);
  }
  return names;
}

}  // namespace

PretrainOptions pretrain_defaults(const std::vector<std::string>& arguments) {
  PretrainOptions options;
  OptionTable family;  // that of flags and --config files; other options are read later
  family.add(kFamily, options.model.family, "");
  family.take_config_files();
  family.read_flags(arguments);
  if (const auto defaults = find_family(options.model.family).defaults) {
    defaults(options.model);
  }
  return options;
}

void describe_network(OptionTable& t, PretrainOptions& o) {
  t.section("network size");
  t.add_choice(kFamily, o.model.family,
               "Which models' defaults and options; gpt takes Megatron's flags for all decoders.",
               family_names());
  t.add("model-size", o.model_size,
        "Layers, width and heads by name: 124M, 1.7B, GPT13B, ... (also MODEL_SIZE_KEY in the "
        "environment). Flags that are given count more.");
  describe_model(t, o.model);
  t.add("seed", o.seed, "Of initial values, dropout and the order of the data.", between(0, 9e15));
}

}  // namespace bloomery
