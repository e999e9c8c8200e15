// The inner loop of MinHash, for each level of the processor.
#pragma once

#include "data/dedup/minhash.h"
#include "device/launch.h"

namespace bloomery {

template <int kLevel>
void update(OnCpu<kLevel>, const LeastHashes& least);  // minhash_cpu.cpp

}  // namespace bloomery
