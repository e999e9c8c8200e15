// The inner loop of MinHash, for each level of the processor.
#pragma once

#include "device/launch.h"
#include "text/dedup/minhash.h"

namespace bloomery {

template <int kLevel>
void update(OnCpu<kLevel>, const LeastHashes& least);  // minhash_cpu.cpp

}  // namespace bloomery
