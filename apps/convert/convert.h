// `bloomery convert`: models between our checkpoints and Hugging Face's folders.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

int convert(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
