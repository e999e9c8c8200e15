#include <algorithm>

#include "config/option_table.h"
#include "train/plan/plan.h"

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

std::string named_task(const std::vector<std::string>& arguments) {
  std::string name;
  OptionTable task;
  task.add("task", name, "");
  task.take_config_files();
  task.read_flags(arguments);
  return name;
}

PretrainOptions task_defaults(const std::vector<std::string>& arguments) {
  const std::string task = named_task(arguments);
  const std::vector<std::string> known = task_names();
  const bool is_known = std::ranges::find(known, task) != known.end();
  std::vector<std::string> all = {
      concat("--", kFamily),
      std::string(task_family(is_known ? find_task(task) : TaskKind()).name)};
  all.insert(all.end(), arguments.begin(), arguments.end());
  PretrainOptions options = pretrain_defaults(all);
  options.task.name = task;
  options.checkpoint.use_checkpoint_args = true;
  return options;
}

PretrainOptions finetune_defaults(const std::vector<std::string>& arguments) {
  const bool task = !named_task(arguments).empty();
  PretrainOptions options = task ? task_defaults(arguments) : pretrain_defaults(arguments);
  options.instruct.enabled = !task;
  options.batch.micro = 8;
  options.data.seq_length = task ? 512 : 1024;
  options.data.split = "100, 0, 0";
  options.rate.rate = 5e-5;
  options.update.weight_decay = 0;
  options.seed = 42;
  options.checkpoint.use_checkpoint_args = true;
  return options;
}

void describe_network(OptionTable& t, PretrainOptions& o) {
  t.section("network size");
  t.add_choice(kFamily, o.model.family,
               "Model family: sets defaults and options (`bloomery help sizes`). gpt takes "
               "Megatron's flags for all decoders.",
               family_names());
  t.add("model-size", o.model_size,
        "Layers, hidden size and attention heads by name: 124M, 1.7B, GPT13B, ... (`bloomery help "
        "sizes`). The variable MODEL_SIZE_KEY works too. Flags override it.");
  describe_model(t, o.model);
  if (const std::string_view start = find_family(o.model.family).starts_from; !start.empty()) {
    t.add(concat(start, "-load"), o.checkpoint.start,
          concat("Model of the family ", start, " to start from when --load has no checkpoint."));
  }
  t.add("seed", o.seed, "Random seed of initial weights, dropout and data order.",
        between(0, 9e15));
}

}  // namespace bloomery
