// The tile registers of the calling thread, from construction to destruction.
#pragma once

#include "ops/matmul/amx_tiles.h"

namespace bloomery::amx {

class TilesInUse {
 public:
  // hardware: false leaves the registers alone, for the emulated forms.
  explicit TilesInUse(bool hardware) : hardware_(hardware) {
    if (hardware_) {
      configure_tiles();
    }
  }
  ~TilesInUse() {
    if (hardware_) {
      release_tiles();
    }
  }
  TilesInUse(const TilesInUse&) = delete;
  TilesInUse& operator=(const TilesInUse&) = delete;

 private:
  const bool hardware_;
};

}  // namespace bloomery::amx
