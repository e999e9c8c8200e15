#include "apps/pretrain/pretrain.h"

#include "apps/bloomery.h"
#include "apps/common/command_line.h"
#include "apps/common/device_choice.h"
#include "apps/common/stop_signals.h"
#include "train/options/dry_run.h"
#include "train/options/read_pretrain.h"
#include "train/pretrain.h"

namespace bloomery {

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
    print_dry_run(table, options, notes, out);
    return kFinished;
  }
  const StopSignals signals;
  const RunEnd end =
      pretrain(options, table, notes,
               {.device = device.options(), .stop_requested = StopSignals::came, .out = out});
  return end == RunEnd::finished ? kFinished : end == RunEnd::stopped ? kStoppedEarly : kFailed;
}

}  // namespace bloomery
