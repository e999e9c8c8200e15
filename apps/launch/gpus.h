// The GPUs of this machine, counted without starting CUDA in this process where that can be.
#pragma once

#include <string>

namespace bloomery {

// Of `nvidia-smi -L`: a line for each GPU, and lines for its parts.
int count_gpus(const std::string& listed);

// 0 in a build for CPUs, which cannot use them.
int gpus_of_this_machine();

}  // namespace bloomery
