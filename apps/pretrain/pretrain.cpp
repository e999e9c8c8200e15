#include "apps/pretrain/pretrain.h"

#include <sstream>

#include "apps/bloomery.h"
#include "apps/common/command_line.h"
#include "apps/common/device_choice.h"
#include "apps/pretrain/processes.h"
#include "apps/report/report.h"
#include "base/log.h"
#include "base/stop_signals.h"
#include "train/log/report_html.h"
#include "train/options/dry_run.h"
#include "train/options/read_pretrain.h"
#include "train/pretrain.h"

namespace bloomery {
namespace {

// The run is done and saved: nothing that happens here is its failure.
void show_samples(const PretrainOptions& options, const DeviceChoice& device) {
  const std::string& folder = options.checkpoint.save;
  if (options.logging.report_samples.empty() || folder.empty()) {
    return;
  }
  try {
    add_samples(folder, {.prompts = options.logging.report_samples}, device);
    write_report(folder);
  } catch (const std::exception& error) {
    Log().warning("--report-samples: ", error.what(),
                  "; the run itself is complete. Try again: ", "bloomery report ", folder,
                  " --samples PROMPT");
  }
}

RunEnd train(const PretrainOptions& options, const OptionTable& table,
             const std::vector<std::string>& notes, PretrainSetting setting) {
  const StopSignals signals("a checkpoint comes after this step, then the end");
  return pretrain(options, table, notes, std::move(setting));
}

int exit_code(RunEnd end) {
  return end == RunEnd::finished ? kFinished : end == RunEnd::stopped ? kStoppedEarly : kFailed;
}

// What the arguments say.
struct Request {
  PretrainOptions options;
  DeviceChoice device;
  OptionTable table;
  std::vector<std::string> notes;

  explicit Request(const Arguments& arguments) : options(pretrain_defaults(arguments)) {
    describe(table, options);
    describe(table, device);
    table.take_config_files();
  }
  void read(const Arguments& arguments, int processes) {
    notes = read_pretrain(table, options, arguments, read_environment(processes));
    if (options.parallel.transport == Transport::nccl && device.options().kind == DeviceKind::cpu) {
      options.parallel.transport = Transport::automatic;  // scripts for GPUs run on a CPU too
      notes.push_back("--distributed-backend nccl is ignored: tensors are not on a GPU here");
    }
  }
};

Arguments typed(const Arguments& arguments) {
  Arguments command = {"bloomery", "pretrain"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

int run_alone(Request& request, const Arguments& arguments, std::ostream& out) {
  request.read(arguments, 1);
  if (request.options.dry_run) {
    print_dry_run(request.table, request.options, request.notes, request.device.options().kind,
                  out);
    return kFinished;
  }
  const RunEnd end = train(request.options, request.table, request.notes,
                           {.world = nullptr,
                            .device = request.device.options(),
                            .stop_requested = StopSignals::came,
                            .out = out,
                            .command = typed(arguments)});
  if (end == RunEnd::finished) {
    show_samples(request.options, request.device);
  }
  return exit_code(end);
}

// As rank `facts.rank` of several processes.
int run_as_rank(Request& request, const Arguments& arguments, std::ostream& out,
                const StartFacts& facts, RankProcess& process) {
  const JoinedWorld& joined = process.joined;
  std::string problem;
  try {
    request.read(arguments, facts.size);
  } catch (const Error& error) {
    problem = error.what();
  }
  if (!agree_on_options(*joined.host, problem, request.table.json())) {
    return kBadInput;
  }
  const bool first = facts.rank == 0;
  const PretrainOptions& options = request.options;
  if (options.dry_run) {
    if (first) {
      print_dry_run(request.table, options, request.notes, request.device.options().kind, out);
    }
    return kFinished;
  }
  Log().info("this is ", facts.line());
  const ParallelOptions& parallel = options.parallel;
  process.report_folder = report_folder(options);
  const DeviceOptions device =
      rank_device(request.device, request.table.given("gpu"), facts, *joined.host);
  const RunEnd end = train(options, request.table, request.notes,
                           {.world = process.watch.record(
                                make_world(joined, parallel.transport, device, parallel.timeout())),
                            .device = device,
                            .stop_requested = StopSignals::came,
                            .out = out,
                            .command = typed(arguments)});
  if (first && end == RunEnd::finished) {
    show_samples(options, request.device);
  }
  return exit_code(end);
}

}  // namespace

int pretrain_command(const Arguments& arguments, std::ostream& out) {
  const StartFacts facts = start_facts(environment_variables());
  Request request(arguments);
  std::ostringstream unheard;
  if (print_help(request.table, arguments, facts.rank == 0 ? out : unheard,
                 "usage: bloomery pretrain [OPTIONS]\n\nTrains a model. docs/options.md has every "
                 "option of Megatron-DeepSpeed.\n")) {
    return kFinished;
  }
  if (facts.size == 1) {
    return run_alone(request, arguments, out);
  }
  return run_joined(facts, [&](RankProcess& process) {
    return run_as_rank(request, arguments, out, facts, process);
  });
}

}  // namespace bloomery
