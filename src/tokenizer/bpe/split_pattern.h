// The split patterns of byte-level tokenizers: how a text falls into pieces before merging. Each is
// known by name and by the regular expression that tokenizer files write; the scanners that do the
// splitting are in bpe/scanners.h.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/regex/syntax.h"

namespace bloomery {

enum class SplitPattern {
  none,    // the whole text is one piece
  gpt2,    // GPT-2, NeoX, ByteLevel of Hugging Face files
  cl100k,  // tiktoken's cl100k_base: as llama3, but white space at the end of the text is one piece
  llama3,  // Llama-3: case-insensitive contractions, digits in threes
  qwen2,   // as llama3 with single digits
  qwen3_5,  // as qwen2 with combining marks inside words
  o200k,    // words divided where capitals begin, contractions at the end of a word
};

// "gpt2", "cl100k", ...: what --pattern takes.
std::optional<SplitPattern> pattern_named(std::string_view name);
std::string name_of(SplitPattern pattern);
std::vector<std::string> pattern_names();

// The pattern that this regular expression describes, in any of the spellings that are in use
// (possessive or not, 's|'t or [st], and so on); nothing when it is none of the patterns above.
std::optional<SplitPattern> known_pattern(std::string_view regex,
                                          regex::Dialect dialect = regex::Dialect::oniguruma);

// The end of the piece that starts at text[at]; `at` must be a character's start inside the text,
// which must be valid UTF-8. For loops that must be fast, see with_scanner in bpe/scanners.h.
std::size_t piece_end(SplitPattern pattern, std::string_view text, std::size_t at);

}  // namespace bloomery
