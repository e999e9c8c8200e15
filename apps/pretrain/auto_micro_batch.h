// `--micro-batch-size auto`: the largest micro-batch that fits into the memory that there is.
#pragma once

#include <string>
#include <vector>

#include "train/what_fits.h"

namespace bloomery {

// Replaces the word by the smallest number. True: it was there.
bool take_auto_micro_batch(std::vector<std::string>& arguments);
// Sets the micro-batch and says to what; the global batch, which must have been given, stays.
std::string choose_micro_batch(PretrainOptions& options, const DeviceOptions& device);

}  // namespace bloomery
