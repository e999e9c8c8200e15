// Programs of Python, DeepSpeed and PyTorch by their own names, which start Bloomery where a script
// of Megatron is run.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

// `bloomery shims`: writes a small file for each program into a folder, and prints the line that
// puts that folder in front of PATH.
int shims_command(const Arguments& arguments, std::ostream& out);

// What such a file calls, `bloomery shim NAME ARGUMENTS`: becomes the program that this call means.
// The words are those behind `shim`. Returns an exit code if nothing is started.
int run_shim(const Arguments& words) noexcept;

}  // namespace bloomery
