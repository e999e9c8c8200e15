// `bloomery evaluate`: how good a model is, on texts and tasks.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

int evaluate(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
