// GPT-2's tokenizer from vocab.json and merges.txt, as Megatron's GPT2BPETokenizer reads them.
#pragma once

#include <filesystem>
#include <memory>

#include "tokenizer/tokenizer.h"

namespace bloomery {

// Special tokens in a text are plain text to it, whatever the options of the encoder: Megatron
// never looks for them. A byte that the vocabulary does not have becomes id 0; eod is
// <|endoftext|>.
std::shared_ptr<const Tokenizer> load_gpt2(const std::filesystem::path& vocab_file,
                                           const std::filesystem::path& merge_file);

}  // namespace bloomery
