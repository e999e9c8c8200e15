// GPT-2's tokenizer from vocab.json and merges.txt, as Megatron's GPT2BPETokenizer reads them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace bloomery {

// Special tokens in a text are plain text to it, whatever the options of the encoder: Megatron
// never looks for them. A byte that the vocabulary does not have becomes id 0; eod is
// <|endoftext|>.
std::shared_ptr<const Tokenizer> load_gpt2(const std::filesystem::path& vocab_file,
                                           const std::filesystem::path& merge_file);

// The same from the contents of the files; the names are for messages.
std::shared_ptr<const Tokenizer> parse_gpt2(std::string_view vocabulary,
                                            const std::string& vocab_name, std::string_view merges,
                                            const std::string& merge_name);

}  // namespace bloomery
