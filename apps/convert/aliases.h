// The converters of Megatron-DeepSpeed and DeepSpeed under their own names and with their flags.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

int merge_mp_partitions(const Arguments& arguments, std::ostream& out);
int checkpoint_util(const Arguments& arguments, std::ostream& out);
int deepspeed_to_megatron(const Arguments& arguments, std::ostream& out);
int deepspeed_to_transformers(const Arguments& arguments, std::ostream& out);
int zero_to_fp32(const Arguments& arguments, std::ostream& out);
int ds_to_universal(const Arguments& arguments, std::ostream& out);
int hf2megads_weight_converter(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
