// Models from one form to the other: our checkpoints, Hugging Face's folders, Megatron's and
// DeepSpeed's checkpoints. Numbers are rounded where that is asked for alone: every tensor keeps
// the dtype it is stored in; Megatron's and DeepSpeed's 16-bit weights lie beside exact ones.
#pragma once

#include <cstddef>
#include <filesystem>

#include "base/log.h"
#include "checkpoint/megatron/foreign_write.h"
#include "checkpoint/model_source.h"

namespace bloomery {

// An adapter that was trained here is kept by our own form, alone in PEFT's, and merged in all
// others. Of DeepSpeed there are also its universal checkpoints, and a file of exact weights alone.
enum class ModelForm { native, hf, peft, megatron, deepspeed, universal, exact_weights };

struct ConvertOptions {
  // A --save folder or one checkpoint, ours, Megatron's or DeepSpeed's, or a Hugging Face folder.
  std::filesystem::path input;
  std::filesystem::path output;  // does not exist yet, or is an empty folder
  ModelForm to = ModelForm::hf;
  std::filesystem::path adapter;  // a folder of PEFT's with LoRA, merged into the weights
  TokenizerOptions tokenizer;     // where it names one, it replaces the model's own
  std::size_t max_shard_bytes = 5'000'000'000;
  ForeignLayout layout;       // of Megatron's and DeepSpeed's ranks; 0 of them: as the source's
  bool safetensors = false;   // exact weights not in a file of torch.save
  bool weights_only = false;  // Megatron's and DeepSpeed's without the run's progress
  // How the input, of Megatron or DeepSpeed, keeps fused queries, keys and values; none: as it
  // says.
  std::optional<QkvOrder> qkv;
  std::optional<DType> dtype;  // of a Hugging Face folder's weights; none: as they are stored
};

struct Conversion {
  std::filesystem::path source, written;  // step-N, or the Hugging Face folder
  std::int64_t num_parameters = 0;
  bool has_tokenizer = false;
};

// A native result is OUTPUT/step-N, of the source's step and with all that it holds when that is a
// checkpoint of ours, else of step 0, which carries the tokenizer's files. OUTPUT appears whole or
// not at all. The stream is on the CPU.
Conversion convert_model(Stream& stream, const ConvertOptions& options, const Log& log);

}  // namespace bloomery
