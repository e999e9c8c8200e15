// Scripts of Megatron and DeepSpeed that are commands here.
#pragma once

#include <string>

namespace bloomery {

// The command for a script as it is named on a command line; empty: not one of those scripts.
std::string command_of_script(const std::string& script);
// The same for a module as `python -m` names it.
std::string command_of_module(const std::string& module);

}  // namespace bloomery
