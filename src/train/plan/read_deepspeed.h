// DeepSpeed's configuration file, and what it means beside the flags.
#pragma once

#include <string>
#include <vector>

#include "config/option_table.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {

// The file of --deepspeed_config, with DeepSpeed's defaults for what it leaves out.
void read_deepspeed(OptionTable& table, PretrainOptions& options, std::vector<std::string>& notes);

// Megatron tells DeepSpeed the batch size of its flags before every step, and the micro-batches
// that are accumulated follow from it. Call when the ranks are known.
void apply_batch_flags(const OptionTable& table, PretrainOptions& options,
                       std::vector<std::string>& notes);

}  // namespace bloomery
