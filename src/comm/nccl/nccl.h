// Communicators between GPUs over NCCL.
//
// Sums of at most 16 KiB, and every maximum, are formed in rank order from what an all_gather
// brings, with 16-bit numbers rounded once. Larger sums are NCCL's: the same bits for the same
// layout, 16-bit numbers rounded on their way. A rank that fails ends the waiting kernels of all.
#pragma once

#include <memory>

#include "comm/nccl/nccl_library.h"
#include "comm/wire_communicator.h"

namespace bloomery {

// Of the world ranks `members`, this one among them, each with a GPU current in the thread that
// calls. Collective. The wire of `world` is not used.
std::unique_ptr<Communicator> make_nccl_communicator(std::shared_ptr<const NcclLibrary> nccl,
                                                     std::shared_ptr<WireWorld> world,
                                                     std::uint32_t group, std::vector<int> members);

}  // namespace bloomery
