// Whether a run can save where it is told to, found out before it trains.
#pragma once

#include <cstdint>
#include <filesystem>

#include "checkpoint/group.h"
#include "checkpoint/stored_file.h"

namespace bloomery {

struct SaveRoom {
  std::uint64_t needed = 0, free = 0;  // bytes of one checkpoint, and of the file system
};

// Collective: each rank writes a file where it will save and removes it again. An Error names the
// rank that cannot, its machine and why, or says that not even one checkpoint has room. `bytes`:
// what this rank will write each time.
SaveRoom probe_save_folder(const std::filesystem::path& folder, const SaveGroup& group,
                           std::uint64_t bytes, const Patience& patience = {});

}  // namespace bloomery
