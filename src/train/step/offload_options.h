// What of a rank's state is offloaded from its device.
#pragma once

#include <string>

#include "base/block_io.h"
#include "optim/placement.h"

namespace bloomery {

struct OffloadOptions {
  // Master weights and moments of this share of the elements lie on the host, and are updated
  // there; the others on the device.
  double optimizer_share = 0;
  std::string folder;  // not empty: not in the host's memory but in files there
  BlockIoOptions files;
  bool values = false;       // of ZeRO 3 also the shards of values; with an optimizer_share of 1
  bool activations = false;  // inputs of recomputed layers
  bool keys = false;         // of chunks of sequences, with their values and gradients

  // Of what optimizer_share says.
  Placement state() const {
    return optimizer_share == 0 ? Placement::device
           : folder.empty()     ? Placement::host
                                : Placement::file;
  }
  bool any() const { return optimizer_share > 0 || activations || keys; }
};

}  // namespace bloomery
