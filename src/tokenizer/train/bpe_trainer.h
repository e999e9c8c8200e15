// Learns the vocabulary of a byte-level BPE from counted words: the same tokens, ids and merges as
// Hugging Face's BpeTrainer with the byte alphabet as its initial one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/bpe/split_pattern.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/train/word_counts.h"

namespace bloomery {

struct BpeTrainingOptions {
  std::int64_t vocab_size = 32768;  // special tokens and bytes included
  std::int64_t min_frequency = 2;   // of a pair that is merged
  std::vector<std::string> special_tokens = {"<|endoftext|>"};
};

struct TrainedBpe {
  // As vocabulary files spell them, by id: special tokens, the 256 bytes in the order of the
  // characters that stand for them, then what was merged.
  std::vector<std::string> tokens;
  std::vector<std::pair<TokenId, TokenId>> merges;  // by rank
  std::vector<std::string> special_tokens;          // ids 0, 1, ...
};

// What is wrong with the options; empty: nothing.
std::vector<std::string> problems(const BpeTrainingOptions& options);

// `go_on` is asked before each merge with the number of tokens so far; false ends the training
// with what there is. The result depends on the words and their counts alone.
TrainedBpe train_bpe(const WordCounts& words, const BpeTrainingOptions& options,
                     const std::function<bool(std::size_t tokens)>& go_on = nullptr);

}  // namespace bloomery
