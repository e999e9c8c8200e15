// Communicators between GPUs over NCCL.
//
// Sums of at most 16 KiB, and every maximum, are formed in rank order from what an all_gather
// brings, with 16-bit numbers rounded once. Larger sums are NCCL's: the same bits for the same
// layout, 16-bit numbers rounded on their way. A rank that fails ends the waiting kernels of all.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"

namespace bloomery {

// Why the ranks of `host` cannot use NCCL, each with its `device`; empty: they can. Collective.
// Each needs a GPU of its own, unless NCCL is 2.30 or newer and NCCL_MULTI_RANK_GPU_ENABLE is 1.
std::string nccl_problem(HostGroup& host, const DeviceOptions& device);

// The ranks of `control`, which has their control plane and divides them into groups, while tensors
// travel by NCCL. Collective; the device becomes that of the calling thread. An Error says why it
// cannot be.
std::unique_ptr<Communicator> over_nccl(std::unique_ptr<Communicator> control,
                                        const DeviceOptions& device);

}  // namespace bloomery
