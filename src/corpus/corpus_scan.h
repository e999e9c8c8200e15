// Passes over a whole corpus on all cores: what its tokens and lengths are like, and whether they
// are what they should be. Memory does not grow with the corpus.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/thread_pool.h"
#include "corpus/indexed_corpus.h"

namespace bloomery {

// Called from any thread with the number of tokens scanned since the last call.
using ScanProgress = std::function<void(std::int64_t tokens)>;

struct TokenCounts {
  // Ids from here on are counted together: no vocabulary is so large.
  static constexpr TokenId kMostIds = 1 << 21;

  std::vector<std::int64_t> of_id;  // up to the largest id found below kMostIds
  std::int64_t negative = 0, beyond = 0;

  std::int64_t num_distinct() const;
  std::vector<TokenId> most_frequent(std::size_t count) const;  // the smaller id first in a draw
};
TokenCounts count_tokens(const IndexedCorpus& corpus, ThreadPool& pool,
                         const ScanProgress& progress = {});

// The first token of the .bin that is negative or not below `vocab_size`.
struct StrayToken {
  std::int64_t position = 0;  // in the .bin
  std::int64_t sequence = 0;  // num_sequences() for an uncounted token
  TokenId id = 0;
};
std::optional<StrayToken> find_stray_token(const IndexedCorpus& corpus, std::int64_t vocab_size,
                                           ThreadPool& pool, const ScanProgress& progress = {});

// How many lengths lie in [2^(i-1), 2^i - 1]; entry 0 counts lengths of zero.
struct LengthHistogram {
  std::array<std::int64_t, 64> of_bits{};
  std::int64_t count = 0, sum = 0, shortest = 0, longest = 0;

  double mean() const;
};
LengthHistogram document_lengths(const IndexedCorpus& corpus, ThreadPool& pool);
LengthHistogram sequence_lengths(const IndexedCorpus& corpus, ThreadPool& pool);

// Megatron-DeepSpeed's preprocessing writes an end-of-document token after every document that is
// not empty and counts it nowhere. The id of that token, if the corpus is of this kind: the number
// of uncounted tokens and the places where they must lie agree (looked up in a sample of the
// documents when there are many).
std::optional<TokenId> uncounted_eod(const IndexedCorpus& corpus);

}  // namespace bloomery
