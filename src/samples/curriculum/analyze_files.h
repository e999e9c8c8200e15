// Names of the data analyzer's files.
#pragma once

#include "samples/curriculum/analyze.h"

namespace bloomery {

// SAVE/METRIC/METRIC_WHAT
std::filesystem::path metric_prefix(const std::filesystem::path& save, DifficultyMetric metric,
                                    const char* what);
// SAVE/METRIC/workerW_threadT
std::filesystem::path part_folder(const std::filesystem::path& save, DifficultyMetric metric,
                                  std::int64_t worker, std::int64_t thread);
// Of the list of samples with a value, in the folder of a part.
std::string list_name(DifficultyMetric metric, std::int64_t value);
// All such lists.
void remove_lists(const std::filesystem::path& folder, DifficultyMetric metric);

}  // namespace bloomery
