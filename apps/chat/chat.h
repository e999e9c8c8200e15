// `bloomery chat`: a conversation with a model in the terminal.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

int chat(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
