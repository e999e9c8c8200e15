// `bloomery pretrain` from options to the end of the run: everything that comes before the ranks
// start, and the ranks.
#pragma once

#include <functional>
#include <ostream>

#include "config/option_table.h"
#include "device/device.h"
#include "train/trainer.h"

namespace bloomery {

struct PretrainSetting {
  DeviceOptions device;
  std::function<bool()> stop_requested;  // asked by every rank in every step
  std::ostream& out;                     // Megatron's lines
  std::vector<std::string> command;      // as typed, for the run's folder
};

// The options were read (read_pretrain.h) from the table. Runs --ranks-as-threads ranks.
RunEnd pretrain(const PretrainOptions& options, const OptionTable& table,
                const std::vector<std::string>& notes, const PretrainSetting& setting);

}  // namespace bloomery
