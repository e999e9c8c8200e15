// `bloomery pretrain`.
#pragma once

#include "command.h"

namespace bloomery {

int pretrain_command(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
