// `bloomery pipeline`: what a schedule of pipeline stages costs, without running it.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

int pipeline(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
