#include "text/filter/repeats.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "text/filter/text_parts.h"

namespace bloomery {
namespace {

constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
constexpr std::uint64_t kBase = 0x1B2F'6C47'9E31'5D83 & kPrime;

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  const std::uint64_t sum =
      (static_cast<std::uint64_t>(product) & kPrime) + static_cast<std::uint64_t>(product >> 61);
  return sum >= kPrime ? sum - kPrime : sum;
}

std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t sum = a + b;
  return sum >= kPrime ? sum - kPrime : sum;
}

std::uint64_t extended(std::uint64_t hash, std::string_view text) {
  for (const char c : text) {
    hash = plus(times(hash, kBase), std::uint64_t{static_cast<unsigned char>(c)} + 1);
  }
  return hash;
}

}  // namespace

Repeats repeats_of(const std::vector<std::string_view>& parts) {
  std::unordered_set<std::string_view> seen;
  Repeats repeats;
  for (const std::string_view part : parts) {
    if (seen.insert(part).second) continue;
    ++repeats.count;
    repeats.characters += characters(part);
  }
  return repeats;
}

// A hash of bytes is a polynomial in the base, so that of a part follows from those of two
// beginnings. Beginnings with spaces have one after every word.
WordRepeats::WordRepeats(const std::vector<std::string_view>& words) {
  for (auto* numbers : {&plain_, &spaced_, &bytes_}) {
    numbers->reserve(words.size() + 1);
    numbers->push_back(0);
  }
  lengths_.reserve(words.size() + 1);
  lengths_.push_back(0);
  for (const std::string_view word : words) {
    plain_.push_back(extended(plain_.back(), word));
    spaced_.push_back(extended(extended(spaced_.back(), word), " "));
    bytes_.push_back(bytes_.back() + word.size());
    lengths_.push_back(lengths_.back() + characters(word));
  }
  powers_.push_back(1);
}

// Parts are a few words, so those of usual lengths are kept.
std::uint64_t WordRepeats::power(std::uint64_t exponent) {
  constexpr std::size_t kKept = 1 << 12;
  while (powers_.size() <= std::min<std::uint64_t>(exponent, kKept)) {
    powers_.push_back(times(powers_.back(), kBase));
  }
  if (exponent <= kKept) return powers_[exponent];
  std::uint64_t result = 1;
  for (std::uint64_t square = kBase; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = times(result, square);
    square = times(square, square);
  }
  return result;
}

std::uint64_t WordRepeats::hash(bool spaces, std::size_t first, std::size_t last) {
  const std::vector<std::uint64_t>& hashes = spaces ? spaced_ : plain_;
  const std::uint64_t length = bytes_[last] - bytes_[first] + (spaces ? last - first : 0);
  return plus(hashes[last], kPrime - times(hashes[first], power(length)));
}

std::int64_t WordRepeats::most_frequent(int n) {
  const auto size = static_cast<std::size_t>(n);
  struct Entry {
    std::int64_t count = 0;
    std::size_t first = 0;
  };
  std::unordered_map<std::uint64_t, Entry> counts;
  Entry most;
  for (std::size_t i = 0; i + size < lengths_.size(); ++i) {
    Entry& entry = counts.try_emplace(hash(true, i, i + size), Entry{0, i}).first->second;
    ++entry.count;
    if (entry.count > most.count || (entry.count == most.count && entry.first < most.first)) {
      most = entry;
    }
  }
  if (most.count == 0) return 0;
  return (length(most.first, most.first + size) + n - 1) * most.count;
}

std::int64_t WordRepeats::repeated(int n) {
  const auto size = static_cast<std::size_t>(n);
  std::unordered_set<std::uint64_t> seen;
  std::int64_t total = 0;
  for (std::size_t i = 0; i + size < lengths_.size();) {
    if (seen.insert(hash(false, i, i + size)).second) {
      ++i;
    } else {
      total += length(i, i + size);
      i += size;
    }
  }
  return total;
}

}  // namespace bloomery
