// The families that the program comes with; each is a file of its name.
#pragma once

#include "models/family.h"

namespace bloomery {

const Family& gpt_family();
const Family& llama_family();
const Family& qwen2_family();
const Family& neox_family();

}  // namespace bloomery
