// `bloomery generate`: text from a model.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

int generate(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
