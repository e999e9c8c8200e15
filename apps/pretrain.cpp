#include "pretrain.h"

#include "base/error.h"
#include "device_choice.h"
#include "train/options/dry_run.h"
#include "train/options/read_pretrain.h"

namespace bloomery {

int pretrain_command(const Arguments& arguments, std::ostream& out) {
  PretrainOptions options;
  DeviceChoice device;
  OptionTable table;
  describe(table, options);
  describe(table, device);
  if (wants_help(arguments)) {
    out << "usage: bloomery pretrain [OPTIONS]\n\nTrains a GPT.\n\n" << table.help();
    return 0;
  }
  const std::vector<std::string> notes =
      read_pretrain(table, options, arguments, read_environment());
  check(options.dry_run, "this build checks options only: give --dry-run");
  print_dry_run(table, options, notes, out);
  return 0;
}

}  // namespace bloomery
