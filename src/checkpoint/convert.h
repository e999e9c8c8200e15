// Models from one form to the other: our checkpoints and Hugging Face's folders. Numbers are never
// rounded: every tensor keeps the dtype it is stored in.
#pragma once

#include <cstddef>
#include <filesystem>

#include "base/log.h"
#include "checkpoint/model_source.h"

namespace bloomery {

enum class ModelForm { native, hf };

struct ConvertOptions {
  std::filesystem::path input;   // a --save folder, one step-N, or a Hugging Face folder
  std::filesystem::path output;  // does not exist yet, or is an empty folder
  ModelForm to = ModelForm::hf;
  TokenizerOptions tokenizer;  // where it names one, it replaces the model's own
  std::size_t max_shard_bytes = 5'000'000'000;
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
