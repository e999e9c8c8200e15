#include "apps/launch/local_ranks.h"

#include <cstdlib>
#include <filesystem>

#include "apps/bloomery.h"
#include "apps/launch/environment.h"
#include "base/error.h"

namespace bloomery {
namespace {

std::string python() {
  const char* const given = std::getenv("PYTHON_EXEC");
  return given != nullptr && *given != '\0' ? given : "python3";
}

// megatron.tools.preprocess_data is preprocess_data where that is ours.
Arguments named_by_module(Arguments command) {
  command[0].erase(0, command[0].rfind('.') + 1);  // npos + 1 is 0
  return command;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : ",") + word;
  }
  return text;
}

using Map = std::map<std::string, std::string>;

Map variables_of(const NodeStart& start, int local, const LaunchOptions& options) {
  const std::string rank = std::to_string(start.first_rank + local),
                    world = std::to_string(start.world_size), local_rank = std::to_string(local),
                    local_size = std::to_string(start.ranks.ranks),
                    port = std::to_string(start.port);
  Map variables = {{"BLOOMERY_RANK", rank},
                   {"BLOOMERY_WORLD_SIZE", world},
                   {"BLOOMERY_LOCAL_RANK", local_rank},
                   {"BLOOMERY_LOCAL_SIZE", local_size},
                   {"BLOOMERY_HOST", start.host},
                   {"BLOOMERY_PORT", port}};
  // For programs that are not ours, as torchrun and DeepSpeed tell it.
  const Map theirs = {{"RANK", rank},
                      {"WORLD_SIZE", world},
                      {"LOCAL_RANK", local_rank},
                      {"LOCAL_WORLD_SIZE", local_size},
                      {"LOCAL_SIZE", local_size},
                      {"MASTER_ADDR", start.host},
                      {"MASTER_PORT", port},
                      {"GROUP_RANK", std::to_string(start.node)},
                      {"GROUP_WORLD_SIZE", std::to_string(start.num_nodes)},
                      {"CROSS_RANK", std::to_string(start.node)},
                      {"CROSS_SIZE", std::to_string(start.num_nodes)},
                      {"ROLE_NAME", options.role},
                      {"ROLE_RANK", rank},
                      {"ROLE_WORLD_SIZE", world},
                      {"TORCHELASTIC_RESTART_COUNT", std::to_string(start.attempt)},
                      {"TORCHELASTIC_MAX_RESTARTS", std::to_string(options.max_restarts)},
                      {"TORCHELASTIC_RUN_ID", options.run_id.empty() ? "none" : options.run_id}};
  variables.insert(theirs.begin(), theirs.end());
  if (!start.ranks.devices.empty()) {
    variables["CUDA_VISIBLE_DEVICES"] = joined(start.ranks.devices);
  }
  return variables;
}

}  // namespace

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

Arguments program_of(const Arguments& command, const LaunchOptions& options) {
  Arguments words = options.module ? named_by_module(command) : command;
  if (!options.no_python && is_bloomery_command(words)) {
    words.insert(words.begin(), own_program());
    return words;
  }
  words = command;
  const bool script = words[0].ends_with(".py") && !options.no_python;
  if (options.module) {
    words.insert(words.begin(), {python(), "-u", "-m"});
  } else if (script) {
    words.insert(words.begin(), {python(), "-u"});
  }
  return words;
}

void check_command(const Arguments& command, const LaunchOptions& options) {
  const Arguments program = program_of(command, options);
  check(is_program(program[0]), "'", program[0], "' is neither a bloomery command nor a program",
        suggested_command(program[0]), "\n`bloomery --help` lists the commands");
}

std::vector<ChildCommand> rank_commands(const NodeStart& start, const Arguments& command,
                                        const LaunchOptions& options, RankLogs& logs) {
  std::vector<ChildCommand> ranks;
  for (int local = 0; local < start.ranks.ranks; ++local) {
    const int rank = start.first_rank + local;
    ChildCommand child{.name = concat("rank ", rank),
                       .words = program_of(command, options),
                       .variables = variables_of(start, local, options)};
    if (rank == 0 && start.listener >= 0) {
      child.variables["BLOOMERY_LISTENER"] = std::to_string(start.listener);
      child.keep_open = start.listener;
    }
    logs.apply(child, rank, local, start.attempt);
    ranks.push_back(std::move(child));
  }
  return ranks;
}

}  // namespace bloomery
