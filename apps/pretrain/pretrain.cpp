#include "apps/pretrain/pretrain.h"

#include "apps/bloomery.h"
#include "apps/common/command_line.h"
#include "apps/common/device_choice.h"
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

}  // namespace

int pretrain_command(const Arguments& arguments, std::ostream& out) {
  PretrainOptions options = pretrain_defaults(arguments);
  DeviceChoice device;
  OptionTable table;
  describe(table, options);
  describe(table, device);
  table.take_config_files();
  if (print_help(table, arguments, out,
                 "usage: bloomery pretrain [OPTIONS]\n\nTrains a model. docs/options.md has every "
                 "option of Megatron-DeepSpeed.\n")) {
    return kFinished;
  }
  const std::vector<std::string> notes =
      read_pretrain(table, options, arguments, read_environment());
  if (options.dry_run) {
    print_dry_run(table, options, notes, device.options().kind, out);
    return kFinished;
  }
  Arguments command = {"bloomery", "pretrain"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  RunEnd end = RunEnd::finished;
  {
    const StopSignals signals("a checkpoint comes after this step, then the end");
    end = pretrain(options, table, notes,
                   {.device = device.options(),
                    .stop_requested = StopSignals::came,
                    .out = out,
                    .command = command});
  }
  if (end == RunEnd::finished) {
    show_samples(options, device);
  }
  return end == RunEnd::finished ? kFinished : end == RunEnd::stopped ? kStoppedEarly : kFailed;
}

}  // namespace bloomery
