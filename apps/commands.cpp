#include "apps/commands.h"

#include "apps/alcf/alcf.h"
#include "apps/bench/bench.h"
#include "apps/chat/chat.h"
#include "apps/checkpoint/checkpoint.h"
#include "apps/convert/aliases.h"
#include "apps/convert/convert.h"
#include "apps/data/data.h"
#include "apps/doctor/doctor.h"
#include "apps/evaluate/evaluate.h"
#include "apps/generate/generate.h"
#include "apps/help/help.h"
#include "apps/launch/launch.h"
#include "apps/openwebtext/openwebtext.h"
#include "apps/parity/parity.h"
#include "apps/pipeline/pipeline.h"
#include "apps/preprocess/preprocess.h"
#include "apps/pretrain/pretrain.h"
#include "apps/report/report.h"
#include "apps/retrieve/retrieve.h"
#include "apps/serve/serve.h"
#include "apps/serve/text_generation_cli.h"
#include "apps/shims/shims.h"
#include "apps/tokenizer/tokenizer.h"

namespace bloomery {

std::vector<CommandGroup> command_groups() {
  return {
      {"start",
       {{"doctor", "Check this machine, and say how to install what it lacks", doctor},
        {"help", "Describe a command or a topic: compat, exit-codes, sizes", help_command},
        {"shims", "Let scripts of Megatron-DeepSpeed start Bloomery, unchanged", shims_command},
        {"completion", "Write a completion script for bash, zsh or fish", completion},
        {"man", "Write the manual page", man}}},
      {"data",
       {{"preprocess", "Tokenize text into .bin/.idx corpora", preprocess_command},
        {"data", "Clean, filter and deduplicate text; inspect, merge and split corpora", data},
        {"tokenizer", "Train a tokenizer; encode and decode text", tokenizer}}},
      {"train",
       {{"pretrain", "Train a model, from random weights or a checkpoint", pretrain_command},
        {"finetune", "Fine-tune on instructions, conversations, preference pairs or tasks",
         finetune_command},
        {"alcf", "Train as the scripts of Argonne's fork of Megatron-DeepSpeed do", alcf},
        {"launch", "Start a command as several ranks, on one or more machines", launch_command}}},
      {"evaluate and run",
       {{"evaluate", "Compute perplexity, WikiText, LAMBADA, retrieval accuracy or logits",
         evaluate},
        {"generate", "Generate text from prompts", generate},
        {"chat", "Talk to a model in the terminal", chat},
        {"serve", "Serve a model over HTTP: OpenAI's and Megatron's APIs and a web page", serve},
        {"retrieve", "Embed texts with a retriever, and search them", retrieve}}},
      {"convert",
       {{"convert", "Convert between Bloomery, Hugging Face, Megatron and DeepSpeed checkpoints",
         convert}}},
      {"inspect",
       {{"checkpoint", "List, verify, compare and prune checkpoints", checkpoint},
        {"report", "Draw the curves of a run as an HTML page", report},
        {"pipeline", "Simulate a pipeline schedule and draw its timeline", pipeline},
        {"parity", "Compare parallel layouts with one rank, number by number", parity},
        {"bench", "Measure kernels and whole steps on this machine", bench}}},
  };
}

std::vector<Command> compatible_commands() {
  return {
      {"preprocess_data", "Same as `preprocess`", preprocess_command},
      {"merge_datasets", "Same as `data merge`", data_merge},
      {"analyze_data", "Same as `data analyze`", data_analyze},
      {"pretrain_gpt", "Same as `pretrain`", pretrain_command},
      {"pretrain_bert", "Train BERT: `pretrain --model-family bert`", pretrain_bert_command},
      {"pretrain_t5", "Train T5: `pretrain --model-family t5`", pretrain_t5_command},
      {"pretrain_ict", "Train a retriever: `pretrain --model-family ict`", pretrain_ict_command},
      {"finetune_llama", "Fine-tune on Alpaca records, with Megatron-DeepSpeed's flags",
       finetune_llama_command},
      {"tasks_main", "Fine-tune for a task or evaluate, with the flags of tasks/main.py",
       tasks_main_command},
      {"generate_samples_gpt", "Same as `generate`", generate},
      {"run_text_generation_server", "Same as `serve`, at port 5000", run_text_generation_server},
      {"text_generation_cli", "Talk to a running server through PUT /api", text_generation_cli},
      {"merge_mp_partitions", "Join the ranks of a Megatron checkpoint", merge_mp_partitions},
      {"checkpoint_util", "Reshard a Megatron checkpoint", checkpoint_util},
      {"deepspeed_to_megatron", "Convert a checkpoint to Megatron's form", deepspeed_to_megatron},
      {"deepspeed_to_transformers", "Convert a checkpoint to a Hugging Face model",
       deepspeed_to_transformers},
      {"zero_to_fp32", "Write the fp32 weights of a checkpoint to one file", zero_to_fp32},
      {"ds_to_universal", "Convert a checkpoint to DeepSpeed's universal form", ds_to_universal},
      {"inspect_checkpoint", "Print the tensors and values of a checkpoint file",
       checkpoint_inspect},
      {"hf2megads_weight_converter", "Convert between Hugging Face and Megatron-DeepSpeed",
       hf2megads_weight_converter},
      {"blacklist_urls", "Drop blacklisted URLs", blacklist_urls},
      {"cleanup_dataset", "Repair text; keep long English documents", cleanup_dataset},
      {"cleanup_fix_dataset", "Clean and filter documents by named rules", cleanup_fix_dataset},
      {"find_duplicates", "Find pairs of similar documents", find_duplicates},
      {"group_duplicate_url", "Group pairs of similar documents", group_duplicate_url},
      {"remove_group_duplicates", "Keep one document of each duplicate group",
       remove_group_duplicates},
      {"filter_ngrams", "Remove n-grams of test sets from documents", filter_ngrams},
      {"add_id", "Add an id to each document", add_id},
      {"merge_jsons", "Join the JSON files of a folder", merge_jsons},
  };
}

std::vector<Command> all_commands() {
  std::vector<Command> all;
  for (const CommandGroup& group : command_groups()) {
    all.insert(all.end(), group.commands.begin(), group.commands.end());
  }
  const std::vector<Command> compatible = compatible_commands();
  all.insert(all.end(), compatible.begin(), compatible.end());
  return all;
}

}  // namespace bloomery
