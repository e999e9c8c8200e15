// tiktoken rank files: lines of a token in base64 and its rank, which is its id.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace bloomery {

// The file carries neither a pattern nor special tokens. 100,256 ranks are cl100k and 199,998 are
// o200k, with their special tokens; any other number needs `pattern`: a name of
// bpe/split_pattern.h or a regular expression that is known there.
std::shared_ptr<const Tokenizer> load_tiktoken(const std::filesystem::path& path,
                                               const std::string& pattern = "");
// The same from the contents of the file; the name is for messages.
std::shared_ptr<const Tokenizer> parse_tiktoken(std::string_view text, const std::string& name,
                                                const std::string& pattern = "");

// Whether the beginning of a file looks like one: a base64 word, a space and a number.
bool looks_like_tiktoken(std::string_view beginning);

}  // namespace bloomery
