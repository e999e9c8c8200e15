// `bloomery preprocess`, Megatron's preprocess_data.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

int preprocess_command(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
