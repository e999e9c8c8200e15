// `bloomery serve`: a model behind HTTP.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

int serve(const Arguments& arguments, std::ostream& out);
// Under the name of Megatron's server, at its port.
int run_text_generation_server(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
