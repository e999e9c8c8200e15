// Ranges for NVIDIA's tools (nsys, ncu): the scopes of op_clock.h.
#include <nvtx3/nvToolsExt.h>

#include "device/cuda.h"

namespace bloomery::cuda {

void push_range(const char* name) { static_cast<void>(nvtxRangePushA(name)); }

void pop_range() { static_cast<void>(nvtxRangePop()); }

}  // namespace bloomery::cuda
