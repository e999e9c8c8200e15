// MinHash signatures of texts, equal to datatrove's: shingles of words are hashed to 64 bits, each
// of many functions h*a+b modulo 2^61-1 keeps its least value over all shingles. Texts agree in a
// value with the probability of their Jaccard similarity; those that agree in all values of a
// bucket are taken for duplicates.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/dedup/simplify.h"

namespace bloomery {

enum class ShingleHash {
  xxh64,  // datatrove's default
  sha1    // the first 8 bytes, little-endian: FineWeb's
};

struct MinHashOptions {
  int n_grams = 5;  // words of a shingle
  int num_buckets = 14, hashes_per_bucket = 8;
  std::int64_t seed = 1;
  ShingleHash hash = ShingleHash::xxh64;

  std::size_t num_hashes() const {
    return static_cast<std::size_t>(num_buckets) * static_cast<std::size_t>(hashes_per_bucket);
  }
};

// Of one thread.
class MinHash {
 public:
  explicit MinHash(const MinHashOptions& options);

  // Valid until the next call; empty for a text of fewer words than a shingle has.
  std::span<const std::uint64_t> signature(std::string_view text);
  // A number for each bucket of a signature, equal when all its values are.
  void keys(std::span<const std::uint64_t> signature, std::vector<std::uint64_t>& keys) const;

 private:
  void hash_shingles(std::string_view text, const std::vector<std::size_t>& words);

  const MinHashOptions options_;
  TextSimplifier simplifier_;
  std::vector<std::uint64_t> factors_, terms_;  // a and b, padded to whole vectors
  std::vector<std::uint64_t> shingles_, minima_;
};

// minima[k] = the least of minima[k] and (h * factors[k] + terms[k] mod 2^64) mod (2^61 - 1) over
// all h. The three are of the same size, a multiple of kMinHashLanes.
struct LeastHashes {
  std::span<const std::uint64_t> hashes, factors, terms;
  std::span<std::uint64_t> minima;
};
inline constexpr std::size_t kMinHashLanes = 16;
void update(const LeastHashes& least);

}  // namespace bloomery
