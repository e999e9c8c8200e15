#include "apps/launch/launch.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

#include "apps/bloomery.h"
#include "apps/common/command_line.h"
#include "apps/launch/environment.h"
#include "apps/launch/gpus.h"
#include "apps/launch/jobs/jobs.h"
#include "apps/launch/starter.h"
#include "base/error.h"
#include "base/file.h"
#include "device/device.h"

namespace bloomery {
namespace {

constexpr const char* kUsage =
    "usage: bloomery launch [OPTIONS] COMMAND...\n\nStarts COMMAND as several ranks: a bloomery "
    "command (pretrain ...) or another program. Without options there is a rank for each GPU. "
    "Flags of DeepSpeed's launcher and of torchrun mean what they mean there. Rank 0 writes to "
    "this terminal; lines of other ranks start with their rank. When a rank fails, all "
    "end.\n\n`bloomery launch --to slurm|pbs|kubernetes|mpi` writes a job file "
    "instead.\n\nexample:\n  bloomery launch -n 2 pretrain --config run/gpt/options.json\n";

// The file that --save_pid asks for, while the ranks run.
class PidFile {
 public:
  explicit PidFile(const std::string& path) : path_(path) {
    if (path.empty()) {
      return;
    }
    const Socket file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    check(static_cast<bool>(file), "--save_pid: ", path, ": ", std::strerror(errno));
    const std::string text = std::to_string(getpid());
    check(write(file.descriptor(), text.data(), text.size()) > 0, "--save_pid: ", path,
          " cannot be written");
  }
  ~PidFile() { path_.empty() || unlink(path_.c_str()); }
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

 private:
  const std::string path_;
};

void take_handed_variables(const LaunchOptions& options) {
  if (!options.variables_file.empty()) {
    const Socket file(open(options.variables_file.c_str(), O_RDONLY | O_CLOEXEC));
    check(static_cast<bool>(file), options.variables_file, ": ", std::strerror(errno),
          "; --launcher pdsh needs a current folder that all machines share, --launcher ssh does "
          "not");
    take_variables(file.descriptor());
  } else if (options.takes_orders) {
    take_variables(STDIN_FILENO);
  }
}

LaunchFacts facts_for(const LaunchOptions& options) {
  LaunchFacts facts{.variables = environment_variables()};
  facts.cpus = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (!options.hostfile.empty()) {
    facts.hostfile = read_file(options.hostfile);
  }
  const bool counted =
      options.num_ranks > 0 || count_from(options.ranks_per_node) || !options.placement.empty();
  const bool elsewhere = !options.hostfile.empty() || options.program == StartProgram::slurm;
  facts.gpus = counted || elsewhere ? 0 : gpus_of_this_machine();
  return facts;
}

}  // namespace

int launch_command(const Arguments& arguments, std::ostream& out) {
  if (asks_for_job(arguments)) {
    return job_command(arguments, out);
  }
  const auto [flags, command] = divide(arguments, environment_variables());
  LaunchOptions options;
  OptionTable table;
  describe(table, options);
  if (!read_options(table, flags, out, kUsage)) {
    return kFinished;
  }
  if (options.attended >= 0) {
    return attend_node(options.attended);
  }
  check(!command.empty(), "give the command that the ranks run: bloomery launch -n N pretrain ...");
  take_handed_variables(options);
  const StartPlan plan = plan_start(options, facts_for(options));
  for (const std::string& note : plan.notes) {
    messages() << "note: " << note << '\n';
  }
  if (options.save_pid) {
    options.pid_file = concat("/tmp/", getpid(), ".deepspeed");
  }
  const bool here = plan.here >= 0 || std::ranges::any_of(plan.nodes, [&](const NodeRanks& node) {
                      return !options.force_multi && is_this_machine(node.name);
                    });
  const PidFile pid_file(here ? options.pid_file : "");
  return Starter(options, plan, command).run();
}

bool divides_pod(const StartFacts& facts) {
  if (!facts.pod) {
    return false;
  }
  const Variables variables = environment_variables();
  const auto asked = variables.find("PET_NPROC_PER_NODE");
  const std::optional<int> ranks =
      asked == variables.end() ? std::nullopt : count_from(asked->second);
  return ranks.value_or(num_cuda_devices()) > 1;
}

}  // namespace bloomery
