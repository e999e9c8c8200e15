#include "apps/pretrain/auto_micro_batch.h"

#include <algorithm>
#include <sstream>

#include "config/option_table.h"
#include "train/plan/dry_run.h"

namespace bloomery {

bool take_auto_micro_batch(std::vector<std::string>& arguments) {
  bool found = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string name = canonical_option(arguments[i]);
    if (name == "--micro-batch-size" && i + 1 < arguments.size() && arguments[i + 1] == "auto") {
      arguments[i + 1] = "1";
      found = true;
    } else if (name == "--micro-batch-size=auto") {
      arguments[i] = "--micro-batch-size=1";
      found = true;
    }
  }
  return found;
}

Room smallest_room(HostGroup& host, Room own) {
  const std::string mine = concat(own.device, ' ', own.host);
  for (const std::string& each : host.gather("room for micro-batches", mine)) {
    std::istringstream numbers(each);
    std::int64_t on_device = 0, on_host = 0;
    numbers >> on_device >> on_host;
    own.device = std::min(own.device, on_device);
    own.host = std::min(own.host, on_host);
  }
  return own;
}

std::string choose_micro_batch(PretrainOptions& options, const Room& room) {
  check(options.batch.global.has_value(),
        "--micro-batch-size auto keeps the global batch: give it with --global-batch-size");
  options.batch.accumulation.reset();
  options.batch.micro = largest_micro_batch(options, vocabulary_size(options.tokenizer).size, room);
  return concat("--micro-batch-size auto is ", options.batch.micro);
}

}  // namespace bloomery
