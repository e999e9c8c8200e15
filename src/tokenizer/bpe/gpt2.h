// GPT-2's tokenizer from vocab.json and merges.txt, as Megatron's GPT2BPETokenizer reads them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace bloomery {

// <|endoftext|> is the special token, and eod. Megatron never looks for it in a text: encode with
// parse_special = false to do as it does. A byte that the vocabulary does not have becomes id 0.
std::shared_ptr<const Tokenizer> load_gpt2(const std::filesystem::path& vocab_file,
                                           const std::filesystem::path& merge_file);

// The same from the contents of the files; the names are for messages.
std::shared_ptr<const Tokenizer> parse_gpt2(std::string_view vocabulary,
                                            const std::string& vocab_name, std::string_view merges,
                                            const std::string& merge_name);

}  // namespace bloomery
