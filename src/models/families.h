// The families that the program comes with; each is a file of its name.
#pragma once

#include "models/family.h"

namespace bloomery {

const Family& gpt_family();
const Family& llama_family();
const Family& qwen2_family();
const Family& neox_family();
const Family& mistral_family();
const Family& qwen3_family();
const Family& gemma_family();
const Family& bert_family();
const Family& t5_family();
const Family& ict_family();
const Family& mixtral_family();
const Family& qwen2_moe_family();

}  // namespace bloomery
