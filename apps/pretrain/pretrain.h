// `bloomery pretrain`, also under Megatron's names, and `bloomery finetune`.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

int pretrain_command(const Arguments& arguments, std::ostream& out);
// On instruction data, from a model that is there.
int finetune_command(const Arguments& arguments, std::ostream& out);
// With Megatron-DeepSpeed's flags and its Alpaca prompt, as its finetune_llama.
int finetune_llama_command(const Arguments& arguments, std::ostream& out);
// A BERT for a task, or an evaluation, as Megatron's tasks/main.
int tasks_main_command(const Arguments& arguments, std::ostream& out);
// Of the family bert, as Megatron's pretrain_bert.
int pretrain_bert_command(const Arguments& arguments, std::ostream& out);
// Of the family t5, as Megatron's pretrain_t5.
int pretrain_t5_command(const Arguments& arguments, std::ostream& out);
// Of the family ict, as Megatron's pretrain_ict.
int pretrain_ict_command(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
