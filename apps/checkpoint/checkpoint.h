// `bloomery checkpoint`: one function per command.
#pragma once

#include <ostream>

#include "apps/common/command.h"

namespace bloomery {

int checkpoint(const Arguments& arguments, std::ostream& out);
int checkpoint_list(const Arguments& arguments, std::ostream& out);
int checkpoint_verify(const Arguments& arguments, std::ostream& out);
int checkpoint_diff(const Arguments& arguments, std::ostream& out);
int checkpoint_prune(const Arguments& arguments, std::ostream& out);
int checkpoint_inspect(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
