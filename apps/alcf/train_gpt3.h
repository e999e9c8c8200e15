// What the variables of ALCF's train-gpt3.sh ask for, as model.sh and args.sh read them.
#pragma once

#include <string>
#include <vector>

#include "apps/common/command.h"
#include "comm/start/start.h"

namespace bloomery {

struct AlcfRun {
  Arguments flags;                 // of pretrain_gpt
  std::string deepspeed;           // the text of --deepspeed_config
  std::vector<std::string> notes;  // on what is set and what comes of it
};

// An Error for a value that is none, and for a MODEL_SIZE_KEY that the scripts do not have.
AlcfRun alcf_run(const Variables& variables, int world_size);

}  // namespace bloomery
