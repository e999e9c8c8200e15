#include "apps/shims/scripts.h"

#include <algorithm>
#include <map>

#include "apps/commands.h"

namespace bloomery {
namespace {

constexpr const char* kTasks = "tasks/main.py";

// Scripts that other forks and versions have under names of their own, with the same flags.
std::string usual_name(const std::string& name) {
  static const std::map<std::string, std::string> kNames = {{"pretrain_gpt_core", "pretrain_gpt"},
                                                            {"pretrain_gpt_alcf", "pretrain_gpt"}};
  const auto found = kNames.find(name);
  return found == kNames.end() ? name : found->second;
}

std::string command_named(const std::string& script) {
  const std::string name = usual_name(script);
  const std::vector<Command> commands = compatible_commands();
  const bool known =
      std::ranges::any_of(commands, [&](const Command& command) { return command.name == name; });
  return known && name != "tasks_main" ? name : "";
}

}  // namespace

std::string command_of_script(const std::string& script) {
  if (script == kTasks || script.ends_with(std::string("/") + kTasks)) {
    return "tasks_main";
  }
  if (!script.ends_with(".py")) {
    return "";
  }
  const std::size_t begin = script.rfind('/') + 1;  // npos + 1 is 0
  return command_named(script.substr(begin, script.size() - begin - 3));
}

std::string command_of_module(const std::string& module) {
  return module == "tasks.main" ? "tasks_main"
                                : command_named(module.substr(module.rfind('.') + 1));
}

}  // namespace bloomery
