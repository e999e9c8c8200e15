// The teacher that --kd and --mos ask for.
#pragma once

#include <string>
#include <vector>

#include "config/option_table.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {

// Fills DistillFlags::teacher from the record of --load-teacher or, where that folder does not
// exist, from the flags of its sizes. An Error says what of them contradicts the record.
void read_teacher(const OptionTable& table, PretrainOptions& options,
                  std::vector<std::string>& notes);

}  // namespace bloomery
