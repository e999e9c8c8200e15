// `bloomery parity`: trains a model on one rank and under layouts, and compares.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

int parity(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
