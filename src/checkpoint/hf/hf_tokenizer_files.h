// The tokenizer's part of a Hugging Face folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/tokenizer_files.h"
#include "models/hf_config.h"

namespace bloomery {

struct HfTokenizer {
  std::vector<TokenizerFile> files;
  HfTokenIds tokens;
  std::optional<std::string> end_of_text;  // the end token as text
};

// Whether a folder holds files that a tokenizer can be read from.
bool has_tokenizer_files(const std::filesystem::path& folder);

// The files of the tokenizer that the options name, under the names transformers looks for, and
// its special tokens. What transformers has no name for is copied under its own.
HfTokenizer find_hf_tokenizer(const TokenizerOptions& options);

// Copies the files and, where none is among them, writes tokenizer_config.json.
void write_tokenizer_files(const std::filesystem::path& folder, const HfTokenizer& tokenizer,
                           std::int64_t max_positions);

}  // namespace bloomery
