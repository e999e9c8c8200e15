// Whether a run fits into the memory that there is, said before it starts, and which flags would
// make it fit: by the plan's own step on the abstract device (planned_rank.h).
#pragma once

#include <string>
#include <vector>

#include "train/plan/planned_rank.h"

namespace bloomery {

// Bytes that one rank may take. Memory of a CPU rank is that of its host.
struct Room {
  DeviceKind kind = DeviceKind::cpu;
  std::int64_t device = 0, host = 0;

  bool holds(const PlannedMemory& memory) const;
};
// Of a rank among `ranks` that share its device and host.
Room room_for(const DeviceOptions& device, const OffloadFlags& flags, int ranks);

// "device 1.20 of 140 GiB (parameters …), host …", a line.
std::string memory_summary(const PlannedMemory& memory, const Room& room);

// Flags under which a step of these options would fit, those that cost least first, three at most.
std::vector<std::string> settings_that_fit(const PretrainOptions& options, std::int64_t vocabulary,
                                           const Room& room);
// The same as the end of a message.
std::string advice(const PretrainOptions& options, std::int64_t vocabulary, const Room& room);

// The largest micro-batch that divides a data-parallel rank's share of the global batch and fits,
// with a margin for scratch of kernels. An Error if not even one sequence does.
std::int64_t largest_micro_batch(const PretrainOptions& options, std::int64_t vocabulary,
                                 const Room& room);

}  // namespace bloomery
