// What a call of python, deepspeed, torchrun, ds_report or ds_ssh means here.
#pragma once

#include <string>
#include <vector>

#include "apps/common/command.h"
#include "comm/start/start.h"

namespace bloomery {

struct ShimTarget {
  enum class Kind {
    other,     // the program of that name further along PATH, with its arguments
    bloomery,  // this program with these words
    nothing,   // the notes are all
  };
  Kind kind = Kind::other;
  Arguments words;
  Variables variables;             // set for it
  std::vector<std::string> notes;  // lines for standard error
};

// The programs that have a shim.
const std::vector<std::string>& shim_names();

// `variables` is the environment. With BLOOMERY_DRY_RUN what would train is planned, and what would
// write is named.
ShimTarget translate(const std::string& name, const Arguments& arguments,
                     const Variables& variables);

}  // namespace bloomery
