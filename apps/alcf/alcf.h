// `bloomery alcf`: the training scripts of Argonne's fork of Megatron-DeepSpeed, as commands.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

int alcf(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
