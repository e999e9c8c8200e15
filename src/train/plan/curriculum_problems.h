// Rules across the options of curricula and random-LTD.
#pragma once

#include <string>
#include <vector>

#include "train/plan/pretrain_options.h"

namespace bloomery {

std::vector<std::string> curriculum_problems(const PretrainOptions& options);

}  // namespace bloomery
