// Megatron's tools/text_generation_cli.py: a dialogue with a server that answers PUT /api.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

int text_generation_cli(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
