// Where a command runs: the options that every command with kernels shares.
#pragma once

#include "config/option_table.h"
#include "device/device.h"

namespace bloomery {

struct DeviceChoice {
  enum class Kind { automatic, cpu, cuda };

  Kind kind = Kind::automatic;
  int gpu = 0;
  int num_threads = 0;

  DeviceOptions options() const;  // automatic: a GPU when there is one
};

void describe(OptionTable& table, DeviceChoice& choice);

}  // namespace bloomery
