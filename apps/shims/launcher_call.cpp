#include "apps/shims/launcher_call.h"

#include <algorithm>
#include <map>
#include <set>

namespace bloomery {
namespace {

using Names = std::set<std::string>;

// Flags without a value, of either launcher.
const Names& lone_flags(LauncherKind kind) {
  static const Names kDeepSpeed = {
      "--module",           "--no_python",          "--no_local_rank", "--no_ssh",
      "--no_ssh_check",     "--force_multi",        "--save_pid",      "--quiet",
      "--elastic_training", "--bind_cores_to_rank", "--help"};
  static const Names kTorchrun = {"--module",  "--no_python", "--standalone",
                                  "--use_env", "--run_path",  "--enable_each_rank_log_summary",
                                  "--help"};
  return kind == LauncherKind::deepspeed ? kDeepSpeed : kTorchrun;
}

// "-H" and "--num-gpus" as "--hostfile" and "--num_gpus".
std::string full_name(LauncherKind kind, std::string name) {
  static const std::map<std::string, std::string> kDeepSpeed = {
      {"-H", "--hostfile"},
      {"-i", "--include"},
      {"-e", "--exclude"},
      {"-q", "--quiet"},
      {"-h", "--help"},
      {"--num_accelerators", "--num_gpus"},
      {"--num-accelerators", "--num_gpus"}};
  static const std::map<std::string, std::string> kTorchrun = {
      {"-m", "--module"}, {"-h", "--help"}, {"-r", "--redirects"}, {"-t", "--tee"}};
  const auto& names = kind == LauncherKind::deepspeed ? kDeepSpeed : kTorchrun;
  if (const auto found = names.find(name); found != names.end()) {
    return found->second;
  }
  if (name.starts_with("--")) {
    std::replace(name.begin() + 2, name.end(), '-', '_');
  }
  return name;
}

}  // namespace

const LauncherFlag* LauncherCall::find(const std::string& name) const {
  const auto found = std::find_if(flags.rbegin(), flags.rend(),
                                  [&](const LauncherFlag& flag) { return flag.name == name; });
  return found == flags.rend() ? nullptr : &*found;
}

void LauncherCall::remove(const std::string& name) {
  std::erase_if(flags, [&](const LauncherFlag& flag) { return flag.name == name; });
}

LauncherCall read_launcher_call(LauncherKind kind, const Arguments& words) {
  LauncherCall call{.kind = kind};
  std::size_t i = 0;
  for (; i < words.size() && words[i].starts_with("-") && words[i] != "--"; ++i) {
    const std::size_t equals = words[i].find('=');
    LauncherFlag flag{full_name(kind, words[i].substr(0, equals)), std::nullopt};
    if (equals != std::string::npos) {
      flag.value = words[i].substr(equals + 1);
    } else if (!lone_flags(kind).contains(flag.name) && i + 1 < words.size()) {
      flag.value = words[++i];
    }
    call.flags.push_back(std::move(flag));
  }
  i += i < words.size() && words[i] == "--";
  if (i < words.size()) {
    call.program = words[i];
    call.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
  }
  call.module = call.find("--module") != nullptr;
  call.remove("--module");
  return call;
}

Arguments flag_words(const LauncherCall& call) {
  Arguments words;
  for (const LauncherFlag& flag : call.flags) {
    words.push_back(flag.name);
    if (flag.value) {
      words.push_back(*flag.value);
    }
  }
  return words;
}

}  // namespace bloomery
