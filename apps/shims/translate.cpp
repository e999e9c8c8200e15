#include "apps/shims/translate.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "apps/shims/dry_run.h"
#include "apps/shims/launcher_call.h"
#include "apps/shims/scripts.h"
#include "base/error.h"

namespace bloomery {
namespace {

ShimTarget other(const std::string& name, const Arguments& arguments) {
  ShimTarget target{.words = {name}};
  target.words.insert(target.words.end(), arguments.begin(), arguments.end());
  return target;
}

std::string text_of(const Variables& variables, const char* name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

ShimTarget ours(const std::string& command, const Arguments& arguments,
                const Variables& variables) {
  if (is_dry_run(variables)) {
    return dry_command(command, arguments, variables);
  }
  ShimTarget target{.kind = ShimTarget::Kind::bloomery, .words = {command}};
  target.words.insert(target.words.end(), arguments.begin(), arguments.end());
  return target;
}

// DeepSpeed looks for a hostfile of its own accord, and goes on without one on this machine alone.
void settle_hostfile(LauncherCall& call, const Variables& variables,
                     std::vector<std::string>& notes) {
  const LauncherFlag* const given = call.find("--hostfile");
  const std::string usual = text_of(variables, "DLTS_HOSTFILE");
  const std::string file = given && given->value ? *given->value
                           : usual.empty()       ? "/job/hostfile"
                                                 : usual;
  call.remove("--hostfile");
  if (std::filesystem::is_regular_file(file)) {
    call.flags.push_back({"--hostfile", file});
    return;
  }
  if (is_dry_run(variables)) {  // it plans for machines that are not here
    return;
  }
  if (given != nullptr) {
    notes.push_back(concat("there is no hostfile ", file, ": the ranks run on this machine"));
  }
  for (const char* const flag : {"--num_nodes", "--force_multi"}) {
    if (const LauncherFlag* const several = call.find(flag)) {
      notes.push_back(concat(flag, several->value ? " " + *several->value : "",
                             " has no effect without a hostfile, as with DeepSpeed"));
      call.remove(flag);
    }
  }
}

void settle_flags(LauncherCall& call, const Variables& variables, std::vector<std::string>& notes) {
  if (call.kind == LauncherKind::torchrun) {
    call.remove("--use_env");
    if (const LauncherFlag* const nodes = call.find("--nnodes"); nodes && nodes->value == "1") {
      call.remove("--nnodes");  // one node needs neither a count nor a number
      call.remove("--node_rank");
    }
    if (call.find("--nproc_per_node") == nullptr) {
      call.flags.push_back({"--nproc_per_node", "1"});
    }
    return;
  }
  if (call.find("--autotuning") != nullptr) {
    throw Error(
        "deepspeed --autotuning is not built: leave it out, and give --micro-batch-size auto, "
        "which "
        "finds the largest that fits");
  }
  for (const char* const flag : {"--no_local_rank", "--log_level", "--quiet", "--venv_script",
                                 "--bind_cores_to_rank", "--bind_core_list"}) {
    call.remove(flag);
  }
  settle_hostfile(call, variables, notes);
}

ShimTarget launched(LauncherKind kind, const Arguments& words, const Variables& variables,
                    const ShimTarget& untouched) {
  LauncherCall call = read_launcher_call(kind, words);
  const std::string command =
      call.module ? command_of_module(call.program) : command_of_script(call.program);
  if (command.empty()) {
    return untouched;
  }
  call.remove("--no_python");
  ShimTarget target{.kind = ShimTarget::Kind::bloomery};
  settle_flags(call, variables, target.notes);
  if (is_dry_run(variables)) {
    ShimTarget dry = dry_launch(call, command, variables);
    dry.notes.insert(dry.notes.begin(), target.notes.begin(), target.notes.end());
    return dry;
  }
  target.words = flag_words(call);
  target.words.insert(target.words.begin(), "launch");
  target.words.insert(target.words.end(), {"--", command});
  target.words.insert(target.words.end(), call.arguments.begin(), call.arguments.end());
  return target;
}

// Where Python's own flags end: at -m, -c, a script or "-".
std::size_t end_of_python_flags(const Arguments& words) {
  static const std::set<std::string> kWithValue = {"-X", "-W", "--check-hash-based-pycs"};
  std::size_t i = 0;
  while (i < words.size() && words[i].starts_with("-") && words[i] != "-m" && words[i] != "-c" &&
         words[i] != "-") {
    i += kWithValue.contains(words[i]) ? 2 : 1;
  }
  return std::min(i, words.size());
}

ShimTarget python(const std::string& name, const Arguments& words, const Variables& variables) {
  const ShimTarget untouched = other(name, words);
  const std::size_t at = end_of_python_flags(words);
  if (at == words.size() || words[at] == "-c" || words[at] == "-") {
    return untouched;
  }
  const auto behind = [&](std::size_t count) {
    return Arguments(words.begin() + static_cast<std::ptrdiff_t>(at + count), words.end());
  };
  if (words[at] != "-m") {
    const std::string command = command_of_script(words[at]);
    return command.empty() ? untouched : ours(command, behind(1), variables);
  }
  const std::string module = at + 1 < words.size() ? words[at + 1] : "";
  if (module == "torch.distributed.launch" || module == "torch.distributed.run" ||
      module == "torch.distributed.launcher") {
    return launched(LauncherKind::torchrun, behind(2), variables, untouched);
  }
  if (module == "deepspeed.launcher.runner" || module == "deepspeed.launcher") {
    return launched(LauncherKind::deepspeed, behind(2), variables, untouched);
  }
  const std::string command = module.empty() ? "" : command_of_module(module);
  return command.empty() ? untouched : ours(command, behind(2), variables);
}

}  // namespace

const std::vector<std::string>& shim_names() {
  static const std::vector<std::string> kNames = {"deepspeed", "ds",      "ds_report", "ds_ssh",
                                                  "python",    "python3", "torchrun"};
  return kNames;
}

ShimTarget translate(const std::string& name, const Arguments& arguments,
                     const Variables& variables) {
  if (name == "python" || name == "python3") {
    return python(name, arguments, variables);
  }
  if (name == "deepspeed" || name == "ds") {
    return launched(LauncherKind::deepspeed, arguments, variables, other(name, arguments));
  }
  if (name == "torchrun") {
    return launched(LauncherKind::torchrun, arguments, variables, other(name, arguments));
  }
  if (name == "ds_report") {
    return {.kind = ShimTarget::Kind::bloomery, .words = {"doctor"}, .variables = {}, .notes = {}};
  }
  throw Error(concat("there is no shim for '", name, "'"));
}

}  // namespace bloomery
