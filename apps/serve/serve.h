// `bloomery serve`: a model behind HTTP.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

int serve(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
