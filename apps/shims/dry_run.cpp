#include "apps/shims/dry_run.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "apps/launch/hosts.h"
#include "base/error.h"
#include "base/file.h"
#include "samples/tasks/task_kind.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {
namespace {

constexpr int kUsualGpus = 8;

int count_of(const std::string& text, const std::string& what) {
  int count = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
  check(problem == std::errc() && end == text.data() + text.size() && count > 0, what, " is '",
        text, "', which is no count");
  return count;
}

// The degree that a flag of the model gives; 1 without it.
int degree(const Arguments& arguments, const std::string& flag) {
  int value = 1;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const std::size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    std::ranges::replace(name, '_', '-');
    if (name != flag) {
      continue;
    }
    if (equals != std::string::npos) {
      value = count_of(word.substr(equals + 1), flag);
    } else if (i + 1 < arguments.size()) {
      value = count_of(arguments[i + 1], flag);
    }
  }
  return value;
}

// Ranks that hold one model.
int model_ranks(const Arguments& arguments) {
  int ranks = 1;
  for (const char* const flag : {"--tensor-model-parallel-size", "--pipeline-model-parallel-size",
                                 "--ds-sequence-parallel-size", "--context-parallel-size"}) {
    ranks *= degree(arguments, flag);
  }
  return ranks;
}

std::string shown(const std::string& command, const Arguments& arguments) {
  std::string line = "bloomery " + command;
  for (const std::string& word : arguments) {
    line += " " + quoted(word);
  }
  return line;
}

// Whether the command has --dry-run.
bool trains(const std::string& command, const Arguments& arguments) {
  if (command != "tasks_main") {
    return command.starts_with("pretrain") || command.starts_with("finetune");
  }
  const std::vector<std::string> tuned = task_names();
  return std::ranges::find(tuned, named_task(arguments)) != tuned.end();
}

ShimTarget named(const std::string& command, const Arguments& arguments, const std::string& ranks) {
  return {.kind = ShimTarget::Kind::nothing,
          .words = {},
          .variables = {},
          .notes = {concat("dry run, this would start ", ranks, shown(command, arguments))}};
}

ShimTarget planned(const std::string& command, const Arguments& arguments, int ranks) {
  ShimTarget target{.kind = ShimTarget::Kind::bloomery, .words = {command}};
  target.words.insert(target.words.end(), arguments.begin(), arguments.end());
  target.words.insert(target.words.end(), {"--dry-run", "--ranks-as-threads"});
  target.words.push_back(std::to_string(ranks));
  // The plan is made by one process, whoever started it.
  target.variables = {{"BLOOMERY_RANK", "0"}, {"BLOOMERY_WORLD_SIZE", "1"}, {"BLOOMERY_PORT", "1"}};
  return target;
}

// The machines of a call: those of the hostfile, or this one, without slots.
std::vector<HostSlots> hosts_of(const LauncherCall& call, int slots) {
  const LauncherFlag* const file = call.find("--hostfile");
  return file == nullptr ? std::vector<HostSlots>{{"localhost", slots}}
                         : parse_hostfile(read_file(*file->value), *file->value);
}

// "worker-0:0,2@worker-1".
int included(const std::string& filter, const std::vector<HostSlots>& hosts, int usual) {
  int ranks = 0;
  std::istringstream parts(filter);
  for (std::string part; std::getline(parts, part, '@');) {
    const std::size_t colon = part.find(':');
    if (colon != std::string::npos) {
      ranks += 1 + static_cast<int>(std::count(part.begin() + static_cast<std::ptrdiff_t>(colon),
                                               part.end(), ','));
      continue;
    }
    const auto host = std::ranges::find(hosts, part, &HostSlots::name);
    ranks += host == hosts.end() ? usual : host->slots;
  }
  return ranks;
}

// What the flags say; 0: nothing.
int ranks_of_deepspeed(const LauncherCall& call, int usual) {
  std::vector<HostSlots> hosts = hosts_of(call, usual);
  const bool counted = call.find("--hostfile") != nullptr;
  const LauncherFlag* const filter = call.find("--include");
  if (filter != nullptr && filter->value && !filter->value->empty()) {
    return included(*filter->value, hosts, usual);
  }
  if (const LauncherFlag* const nodes = call.find("--num_nodes")) {
    const auto count = static_cast<std::size_t>(count_of(nodes->value.value_or(""), nodes->name));
    hosts.resize(counted ? std::min(count, hosts.size()) : count, hosts.front());
  }
  if (const LauncherFlag* const gpus = call.find("--num_gpus")) {
    return count_of(gpus->value.value_or(""), gpus->name) * static_cast<int>(hosts.size());
  }
  if (!counted && hosts.size() == 1) {
    return 0;
  }
  int slots = 0;
  for (const HostSlots& host : hosts) {
    slots += host.slots;
  }
  return slots;
}

int ranks_of_torchrun(const LauncherCall& call, int usual) {
  const auto value = [&](const char* name) {
    const LauncherFlag* const flag = call.find(name);
    return flag == nullptr ? "1" : flag->value.value_or("");
  };
  const std::string nodes = value("--nnodes"), here = value("--nproc_per_node");
  const bool counted = here == "gpu" || here == "auto";
  return count_of(nodes.substr(nodes.find(':') + 1), "--nnodes") *
         (counted ? usual : count_of(here, "--nproc_per_node"));
}

}  // namespace

bool is_dry_run(const Variables& variables) {
  const auto found = variables.find("BLOOMERY_DRY_RUN");
  return found != variables.end() && !found->second.empty() && found->second != "0";
}

int dry_run_gpus(const Variables& variables) {
  const auto found = variables.find("BLOOMERY_DRY_RUN_GPUS");
  return found == variables.end() ? kUsualGpus : count_of(found->second, found->first);
}

ShimTarget dry_command(const std::string& command, const Arguments& arguments,
                       const Variables& variables) {
  if (!trains(command, arguments)) {
    return named(command, arguments, "");
  }
  const StartFacts facts = start_facts(variables);
  if (facts.rank > 0) {
    return {.kind = ShimTarget::Kind::nothing, .words = {}, .variables = {}, .notes = {}};
  }
  return planned(command, arguments, facts.size);
}

ShimTarget dry_launch(const LauncherCall& call, const std::string& command,
                      const Variables& variables) {
  const int usual = dry_run_gpus(variables);
  int ranks = call.kind == LauncherKind::deepspeed ? ranks_of_deepspeed(call, usual)
                                                   : ranks_of_torchrun(call, usual);
  if (!trains(command, call.arguments)) {
    return named(command, call.arguments,
                 ranks == 1 ? "" : concat(ranks == 0 ? usual : ranks, " ranks of "));
  }
  std::vector<std::string> notes;
  if (ranks == 0) {  // all GPUs, of which a machine for a dry run may have none
    const int model = model_ranks(call.arguments);
    ranks = usual % model == 0 ? usual : model;
    notes.push_back(concat("dry run with ", ranks, " ranks; BLOOMERY_DRY_RUN_GPUS changes that"));
  }
  ShimTarget target = planned(command, call.arguments, ranks);
  target.notes = notes;
  return target;
}

}  // namespace bloomery
