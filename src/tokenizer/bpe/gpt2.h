// GPT-2's tokenizer from vocab.json and merges.txt, as Megatron's GPT2BPETokenizer reads them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace bloomery {

namespace hf {
struct ModelTables;
}

// <|endoftext|> is the special token, and eod. Megatron never looks for it in a text: encode with
// parse_special = false to do as it does. A byte that the vocabulary does not have becomes id 0.
std::shared_ptr<const Tokenizer> load_gpt2(const std::filesystem::path& vocab_file,
                                           const std::filesystem::path& merge_file);

// The same from the contents of the files; the names are for messages.
std::shared_ptr<const Tokenizer> parse_gpt2(std::string vocabulary, const std::string& vocab_name,
                                            std::string merges, const std::string& merge_name);

// Reads lines of two tokens each; the tables refer to the text. A line that begins with "#version"
// is none.
void read_merges_txt(std::string_view text, const std::string& name, hf::ModelTables& tables);

}  // namespace bloomery
