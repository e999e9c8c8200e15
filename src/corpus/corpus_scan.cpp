#include "corpus/corpus_scan.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <mutex>

#include "base/error.h"

namespace bloomery {
namespace {

constexpr std::int64_t kTokensAtOnce = 1 << 18;  // one megabyte of ids
constexpr std::int64_t kLengthsAtOnce = 1 << 18;

// Calls body(first, ids) for all tokens of the .bin, piece after piece on all threads.
template <class Body>
void for_each_piece(const IndexedCorpus& corpus, ThreadPool& pool, const ScanProgress& progress,
                    const Body& body) {
  const std::int64_t total = corpus.num_tokens() + corpus.num_uncounted_tokens();
  pool.for_ranges(total, kTokensAtOnce, [&](std::int64_t begin, std::int64_t end) {
    std::vector<TokenId> ids(static_cast<std::size_t>(end - begin));
    corpus.read_bin(begin, ids);
    body(begin, std::span<const TokenId>(ids));
    if (progress) {
      progress(end - begin);
    }
  });
}

// Counts of one thread. Tokens at even and odd places have counters of their own: a frequent token
// would otherwise wait for its own last increment.
struct ThreadCounts {
  using Pair = std::array<std::int64_t, 2>;
  std::vector<Pair> of_id;
  std::int64_t negative = 0, beyond = 0;
};

void count_piece(std::span<const TokenId> ids, ThreadCounts& counts) {
  const auto [smallest, largest] = std::ranges::minmax(ids);
  const TokenId last = std::min(largest, TokenCounts::kMostIds - 1);
  if (last >= 0 && counts.of_id.size() <= static_cast<std::size_t>(last)) {
    counts.of_id.resize(static_cast<std::size_t>(last) + 1);
  }
  ThreadCounts::Pair* const of_id = counts.of_id.data();
  if (smallest >= 0 && largest < TokenCounts::kMostIds) {
    std::size_t i = 0;
    for (; i + 1 < ids.size(); i += 2) {
      ++of_id[ids[i]][0];
      ++of_id[ids[i + 1]][1];
    }
    if (i < ids.size()) {
      ++of_id[ids[i]][0];
    }
    return;
  }
  for (const TokenId id : ids) {
    ++(id < 0 ? counts.negative : id >= TokenCounts::kMostIds ? counts.beyond : of_id[id][0]);
  }
}

void add(TokenCounts& to, const ThreadCounts& from) {
  to.of_id.resize(std::max(to.of_id.size(), from.of_id.size()));
  for (std::size_t i = 0; i < from.of_id.size(); ++i) {
    to.of_id[i] += from.of_id[i][0] + from.of_id[i][1];
  }
  to.negative += from.negative;
  to.beyond += from.beyond;
}

// Tables that threads borrow, so that there are as many as threads and not as pieces.
class CountTables {
 public:
  ThreadCounts take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      return {};
    }
    ThreadCounts counts = std::move(free_.back());
    free_.pop_back();
    return counts;
  }
  void give_back(ThreadCounts counts) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(counts));
  }
  TokenCounts sum() const {
    TokenCounts total;
    for (const ThreadCounts& counts : free_) {
      add(total, counts);
    }
    return total;
  }

 private:
  std::mutex mutex_;
  std::vector<ThreadCounts> free_;
};

void add(LengthHistogram& histogram, std::int64_t length) {
  ++histogram.of_bits[static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(length)))];
  histogram.shortest = histogram.count == 0 ? length : std::min(histogram.shortest, length);
  histogram.longest = std::max(histogram.longest, length);
  histogram.sum += length;
  ++histogram.count;
}

void add(LengthHistogram& to, const LengthHistogram& from) {
  for (std::size_t i = 0; i < to.of_bits.size(); ++i) {
    to.of_bits[i] += from.of_bits[i];
  }
  to.shortest = to.count == 0 ? from.shortest : std::min(to.shortest, from.shortest);
  to.longest = std::max(to.longest, from.longest);
  to.sum += from.sum;
  to.count += from.count;
}

// `lengths_of(begin, end)` gives a vector of the lengths of these items.
template <class LengthsOf>
LengthHistogram lengths(std::int64_t count, ThreadPool& pool, const LengthsOf& lengths_of) {
  std::mutex mutex;
  LengthHistogram total;
  pool.for_ranges(count, kLengthsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    LengthHistogram part;
    for (const std::int64_t length : lengths_of(begin, end)) {
      add(part, length);
    }
    const std::lock_guard lock(mutex);
    add(total, part);
  });
  return total;
}

// Tokens of documents [begin, end).
std::vector<std::int64_t> document_sizes(const IndexedCorpus& corpus, std::int64_t begin,
                                         std::int64_t end) {
  const std::vector<std::int64_t> marks = corpus.first_sequences(begin, end + 1);
  const std::vector<std::int64_t> starts = corpus.first_tokens(marks.front(), marks.back() + 1);
  std::vector<std::int64_t> sizes;
  for (std::size_t k = 1; k < marks.size(); ++k) {
    sizes.push_back(starts[marks[k] - marks.front()] - starts[marks[k - 1] - marks.front()]);
  }
  return sizes;
}

}  // namespace

std::int64_t TokenCounts::num_distinct() const {
  return std::ranges::count_if(of_id, [](std::int64_t count) { return count > 0; });
}

std::vector<TokenId> TokenCounts::most_frequent(std::size_t count) const {
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < of_id.size(); ++i) {
    if (of_id[i] > 0) {
      ids.push_back(static_cast<TokenId>(i));
    }
  }
  const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(std::min(count, ids.size()));
  std::ranges::partial_sort(ids, middle, [&](TokenId a, TokenId b) {
    const std::int64_t left = of_id[static_cast<std::size_t>(a)];
    const std::int64_t right = of_id[static_cast<std::size_t>(b)];
    return left != right ? left > right : a < b;
  });
  ids.erase(middle, ids.end());
  return ids;
}

TokenCounts count_tokens(const IndexedCorpus& corpus, ThreadPool& pool,
                         const ScanProgress& progress) {
  CountTables tables;
  for_each_piece(corpus, pool, progress, [&](std::int64_t, std::span<const TokenId> ids) {
    ThreadCounts counts = tables.take();
    count_piece(ids, counts);
    tables.give_back(std::move(counts));
  });
  return tables.sum();
}

std::optional<StrayToken> find_stray_token(const IndexedCorpus& corpus, std::int64_t vocab_size,
                                           ThreadPool& pool, const ScanProgress& progress) {
  // Negative ids are large as unsigned numbers, so that one comparison finds both kinds.
  const auto limit =
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(vocab_size, 0, std::int64_t{1} << 31));
  const auto is_stray = [&](TokenId id) { return static_cast<std::uint32_t>(id) >= limit; };
  std::mutex mutex;
  std::optional<StrayToken> first;
  for_each_piece(corpus, pool, progress, [&](std::int64_t begin, std::span<const TokenId> ids) {
    std::uint32_t largest = 0;
    for (const TokenId id : ids) {
      largest = std::max(largest, static_cast<std::uint32_t>(id));
    }
    if (largest < limit) {
      return;
    }
    const auto found = std::ranges::find_if(ids, is_stray);
    const std::int64_t position = begin + (found - ids.begin());
    const std::lock_guard lock(mutex);
    if (!first || position < first->position) {
      first = StrayToken{.position = position, .id = *found};
    }
  });
  if (first) {
    std::int64_t low = 0,
                 high = corpus.num_sequences();  // the sequence after the one that holds it
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (corpus.first_token(middle) + corpus.length(middle) <= first->position) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    first->sequence = low;
  }
  return first;
}

double LengthHistogram::mean() const {
  return count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count);
}

LengthHistogram document_lengths(const IndexedCorpus& corpus, ThreadPool& pool) {
  return lengths(corpus.num_documents(), pool, [&](std::int64_t begin, std::int64_t end) {
    return document_sizes(corpus, begin, end);
  });
}

LengthHistogram sequence_lengths(const IndexedCorpus& corpus, ThreadPool& pool) {
  return lengths(corpus.num_sequences(), pool,
                 [&](std::int64_t begin, std::int64_t end) { return corpus.lengths(begin, end); });
}

std::optional<TokenId> uncounted_eod(const IndexedCorpus& corpus) {
  constexpr std::int64_t kMostLookups = 100000;
  const std::int64_t documents = corpus.num_documents();
  const std::int64_t filled = documents - corpus.num_empty_documents();
  if (corpus.num_uncounted_tokens() != filled || filled == 0) {
    return std::nullopt;
  }
  const std::int64_t step = std::max<std::int64_t>(1, filled / kMostLookups);
  std::optional<TokenId> eod;
  std::int64_t before = 0;  // documents that are not empty
  for (std::int64_t first = 0; first < documents; first += kLengthsAtOnce) {
    const std::int64_t last = std::min(documents, first + kLengthsAtOnce);
    const std::vector<std::int64_t> marks = corpus.first_sequences(first, last + 1);
    for (std::size_t k = 1; k < marks.size(); ++k) {
      if (marks[k - 1] == marks[k]) {
        continue;
      }
      if (before % step == 0 || before + 1 == filled) {
        TokenId id = 0;
        corpus.read_bin(corpus.first_token(marks[k]) + before, {&id, 1});
        if (eod.value_or(id) != id) {
          return std::nullopt;
        }
        eod = id;
      }
      ++before;
    }
  }
  return eod;
}

}  // namespace bloomery
