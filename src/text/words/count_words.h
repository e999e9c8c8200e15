// Counts the words of the corpus inputs on many threads, for the training of a tokenizer.
//
// The inputs are those of preprocess (corpus/preprocess/preprocess.h), and so are the documents: a
// line of plain text without its newline, or the strings of some keys of a JSON line; blank lines
// are left out, bad lines counted.
#pragma once

#include <cstdint>

#include "text/lines/line_options.h"
#include "tokenizer/train/word_counts.h"

namespace bloomery {

struct WordInputOptions : LineOptions {
  WordInputOptions() { log_interval = 100'000; }

  // Only the beginning of the input: whole lines up to so many bytes, decompressed, and so many
  // lines that are not blank; 0: all.
  std::int64_t limit_bytes = 0, limit_documents = 0;
  std::int64_t max_words = 10'000'000;
};

void describe(OptionTable& table, WordInputOptions& options);

struct WordInputSummary {
  WordCounts words;
  std::int64_t lines = 0;  // good ones
  std::int64_t bad_lines = 0;
  std::uint64_t bytes = 0;
  // Words that came so often or less were forgotten at some time, because there were more than
  // max_words of them; 0: none.
  std::uint64_t forgotten_up_to = 0;
  bool interrupted = false;
};

// The counts are the same for every number of workers. After every kBytesBetweenCuts of input the
// rarest words are forgotten if there are more than max_words: memory is bounded, by about 60 bytes
// a word here and 200 more while merges are learnt.
WordInputSummary count_words(const WordInputOptions& options, SplitPattern pattern,
                             const LineCaller& caller);

inline constexpr std::uint64_t kBytesBetweenCuts = 256 << 20;

}  // namespace bloomery
