#include "text/dedup/minhash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "base/generators/numpy_random.h"
#include "base/round_up.h"
#include "text/dedup/minhash_kernel.h"
#include "text/dedup/sha1.h"

namespace bloomery {
namespace {

constexpr std::int64_t kPrime = (std::int64_t{1} << 61) - 1;

}  // namespace

void update(const LeastHashes& least) {
  if constexpr (build::num_cpu_levels > 1) {
    switch (cpu_level()) {
      case 3:
        return update(OnCpu<3>{}, least);
      case 2:
        return update(OnCpu<2>{}, least);
      case 1:
        return update(OnCpu<1>{}, least);
    }
  }
  update(OnCpu<0>{}, least);
}

MinHash::MinHash(const MinHashOptions& options) : options_(options) {
  const std::size_t padded = round_up(options.num_hashes(), kMinHashLanes);
  factors_.resize(padded);
  terms_.resize(padded);
  minima_.resize(padded);
  NumpyRandom random(options.seed);
  for (std::size_t i = 0; i < options.num_hashes(); ++i) {
    factors_[i] = static_cast<std::uint64_t>(random.randint(1, kPrime));
  }
  for (std::size_t i = 0; i < options.num_hashes(); ++i) {
    terms_[i] = static_cast<std::uint64_t>(random.randint(0, kPrime));
  }
}

void MinHash::hash_shingles(std::string_view text, const std::vector<std::size_t>& words) {
  shingles_.clear();
  const auto n = static_cast<std::size_t>(options_.n_grams);
  for (std::size_t i = 0; i + n <= words.size(); ++i) {
    const std::size_t end = i + n < words.size() ? words[i + n] - 1 : text.size();
    const std::string_view shingle = text.substr(words[i], end - words[i]);
    shingles_.push_back(options_.hash == ShingleHash::sha1
                            ? sha1_start(shingle)
                            : XXH64(shingle.data(), shingle.size(), 0));
  }
}

std::span<const std::uint64_t> MinHash::signature(std::string_view text) {
  const std::string_view simple = simplifier_.simplify(text);
  hash_shingles(simple, simplifier_.words());
  if (shingles_.empty()) return {};
  minima_.assign(minima_.size(), UINT64_MAX);
  update({shingles_, factors_, terms_, minima_});
  return std::span(minima_).first(options_.num_hashes());
}

void MinHash::keys(std::span<const std::uint64_t> signature,
                   std::vector<std::uint64_t>& keys) const {
  const auto rows = static_cast<std::size_t>(options_.hashes_per_bucket);
  keys.clear();
  for (std::size_t bucket = 0; bucket * rows < signature.size(); ++bucket) {
    keys.push_back(
        XXH3_64bits_withSeed(&signature[bucket * rows], rows * sizeof(std::uint64_t), bucket));
  }
}

}  // namespace bloomery
