// `bloomery pretrain`, also under Megatron's name pretrain_gpt.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

int pretrain_command(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
