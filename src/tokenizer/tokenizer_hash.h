// Whether two tokenizers, from whatever files, mean the same by their ids.
#pragma once

#include <cstdint>
#include <string>

#include "tokenizer/tokenizer.h"

namespace bloomery {

struct TokenizerOptions;

// How messages call the tokenizer: its path, or its type with the first of its files. Empty for
// NullTokenizer, whose ids mean what the user says.
std::string tokenizer_name(const TokenizerOptions& options);

// A hash of the tokens of the ids below `num_ids`, as the vocabulary spells them, and of how texts
// come apart into ids: these tokens and a page in several scripts, so that other merges, scores or
// normalisation give another hash. Ids from `num_ids` on, such as --vocab-extra-ids adds, change
// nothing.
std::string tokenizer_hash(const Tokenizer& tokenizer, std::int64_t num_ids);

}  // namespace bloomery
