// Instruction data of a run, read before it is planned: how long it is follows from them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/option_table.h"
#include "samples/instruct/instruct_data.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {

// Sets the number of iterations where --epochs says it, and evaluations, where no flag does, to
// the whole of the validation data once per epoch. Adds what the data report to the notes.
std::shared_ptr<const InstructData> read_instructions(const OptionTable& table,
                                                      PretrainOptions& options,
                                                      std::vector<std::string>& notes);

// Steps per log line where no flag says it: a short run has about twenty lines.
std::int64_t tuning_log_interval(const PretrainOptions& options);

}  // namespace bloomery
