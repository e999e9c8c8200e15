#include "apps/shims/ds_ssh.h"

#include <filesystem>
#include <iostream>

#include "apps/launch/environment.h"
#include "apps/launch/hosts.h"
#include "apps/launch/watch.h"
#include "apps/shims/dry_run.h"
#include "base/file.h"

namespace bloomery {
namespace {

struct Call {
  std::string hostfile = "/job/hostfile";
  std::string command;  // pdsh joins the words too
};

Call read_call(const Arguments& arguments) {
  Call call;
  std::size_t first = 0;
  if (arguments.size() > 1 && arguments[0] == "-f") {
    call.hostfile = arguments[1];
    first = 2;
  }
  for (std::size_t i = first; i < arguments.size(); ++i) {
    call.command += (i == first ? "" : " ") + arguments[i];
  }
  return call;
}

ChildCommand on_host(const std::string& host, const std::string& command) {
  ChildCommand child{.name = host, .words = {"sh", "-c", command}, .prefix = host + ": "};
  if (!is_this_machine(host)) {
    child.words = {"ssh", "-o", "BatchMode=yes", host, command};
  }
  return child;
}

// Counting GPUs changes nothing, so it is done, or played where no program can count them.
int dry_ds_ssh(const Call& call, const Variables& variables) {
  if (!call.command.starts_with("nvidia-smi")) {
    std::cerr << "bloomery: dry run, this would run on each machine: " << call.command << '\n';
    return 0;
  }
  for (int gpu = 0; gpu < dry_run_gpus(variables); ++gpu) {
    std::cout << "localhost: GPU " << gpu << " of a dry run\n";
  }
  return std::cout.flush() ? 0 : 1;
}

}  // namespace

int ds_ssh(const Arguments& arguments, const Variables& variables) {
  const Call call = read_call(arguments);
  std::cout << "bloomery\nhostfile=" << call.hostfile << std::endl;
  if (is_dry_run(variables) &&
      (!is_program("nvidia-smi") || !call.command.starts_with("nvidia-smi"))) {
    return dry_ds_ssh(call, variables);
  }
  std::vector<HostSlots> hosts = {{"localhost", 1}};
  if (std::filesystem::is_regular_file(call.hostfile)) {
    hosts = parse_hostfile(read_file(call.hostfile), call.hostfile);
  }
  const PassedSignals signals;
  std::vector<Child> children;
  for (const HostSlots& host : hosts) {
    children.emplace_back(on_host(host.name, call.command));
  }
  return watch(children, signals, {}).code;
}

}  // namespace bloomery
