#include "text/openwebtext/find_duplicates.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/generators/numpy_random.h"
#include "base/hash.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

constexpr std::size_t kWindow = 5;
constexpr std::uint32_t kFirst = 0xCC9E2D51, kSecond = 0x1B873593;

std::uint32_t scrambled(std::uint32_t word) { return std::rotl(word * kFirst, 15) * kSecond; }

// MurmurHash3, 32 bits, of five bytes; what does not depend on the seed is given.
std::uint32_t murmur3(std::uint32_t seed, std::uint32_t body, std::uint32_t tail) {
  std::uint32_t hash = std::rotl(seed ^ body, 13) * 5 + 0xE6546B64;
  hash ^= tail;
  hash ^= kWindow;
  hash = (hash ^ hash >> 16) * 0x85EBCA6B;
  hash = (hash ^ hash >> 13) * 0xC2B2AE35;
  return hash ^ hash >> 16;
}

}  // namespace

std::vector<std::uint32_t> fingerprint_seeds(const FindDuplicatesOptions& options) {
  NumpyRandom random(options.seed);
  std::vector<std::uint32_t> seeds;
  for (int i = 0; i < options.num_seeds; ++i) {
    seeds.push_back(static_cast<std::uint32_t>(random.randint(0, 1'000'000)));
  }
  return seeds;
}

std::vector<std::uint32_t> byte_fingerprint(std::string_view text,
                                            std::span<const std::uint32_t> seeds) {
  std::vector<std::int32_t> least(seeds.size(), -1);
  for (std::size_t at = 0; at + kWindow <= text.size(); ++at) {
    std::uint32_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof word);
    const std::uint32_t body = scrambled(word);
    const std::uint32_t tail = scrambled(static_cast<unsigned char>(text[at + 4]));
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      least[i] = std::min(least[i], static_cast<std::int32_t>(murmur3(seeds[i], body, tail)));
    }
  }
  return {least.begin(), least.end()};
}

std::vector<std::uint64_t> shingles(std::string_view text) {
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; at < text.size();) {
    starts.push_back(at);
    at += static_cast<std::size_t>(utf8_at(text, at).length);
  }
  std::vector<std::uint64_t> hashes;
  for (std::size_t i = 0; i + kWindow < starts.size(); ++i) {
    hashes.push_back(xxh3(text.substr(starts[i], starts[i + kWindow] - starts[i])));
  }
  std::ranges::sort(hashes);
  hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
  return hashes;
}

double similarity(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b,
                  Jaccard kind) {
  if (a.empty() || b.empty()) return 0;
  std::size_t common = 0;
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    if (*x == *y) ++common;
    const bool step_x = *x <= *y, step_y = *y <= *x;
    x += step_x ? 1 : 0;
    y += step_y ? 1 : 0;
  }
  const std::size_t whole = kind == Jaccard::by_smaller  ? std::min(a.size(), b.size())
                            : kind == Jaccard::by_larger ? std::max(a.size(), b.size())
                                                         : a.size() + b.size() - common;
  return static_cast<double>(common) / static_cast<double>(whole);
}

DuplicateFinder::DuplicateFinder(const FindDuplicatesOptions& options)
    : options_(options), bands_(static_cast<std::size_t>(options.num_bands)) {
  check(options.num_seeds % options.num_bands == 0, "--num-seeds ", options.num_seeds,
        " is not a multiple of --num-bands ", options.num_bands);
}

void DuplicateFinder::add(std::string id, std::string text,
                          std::span<const std::uint32_t> fingerprint) {
  const auto [entry, fresh] = numbers_.try_emplace(id, ids_.size());
  const std::size_t number = entry->second;
  if (fresh) {
    ids_.push_back(std::move(id));
    texts_.push_back(std::move(text));
  } else {
    texts_[number] = std::move(text);
  }
  const std::size_t rows = fingerprint.size() / bands_.size();
  for (std::size_t i = 0; i < bands_.size(); ++i) {
    Band& band = bands_[i];
    const std::uint64_t hash = xxh3(std::as_bytes(fingerprint.subspan(i * rows, rows)));
    const auto bucket = band.numbers.try_emplace(hash, band.buckets.size()).first->second;
    if (bucket == band.buckets.size()) band.buckets.emplace_back();
    std::vector<std::size_t>& documents = band.buckets[bucket];
    if (std::ranges::find(documents, number) == documents.end()) documents.push_back(number);
  }
}

void DuplicateFinder::look_into(std::vector<std::size_t> bucket,
                                const std::function<void(const SimilarDocuments&)>& visit) const {
  for (int round = 0; bucket.size() > 1 && round != options_.heuristic_iter; ++round) {
    SimilarDocuments found{bucket[0], {}};
    const std::vector<std::uint64_t> main = shingles(texts_[bucket[0]]);
    std::vector<std::size_t> rest;
    for (std::size_t i = 1; i < bucket.size(); ++i) {
      const double alike = similarity(main, shingles(texts_[bucket[i]]), options_.jaccard);
      if (alike > 0.5) {
        found.others.emplace_back(bucket[i], alike);
      } else {
        rest.push_back(bucket[i]);
      }
    }
    if (!found.others.empty()) visit(found);
    bucket = std::move(rest);
  }
}

void DuplicateFinder::for_each(const std::function<void(const SimilarDocuments&)>& visit) const {
  for (const Band& band : bands_) {
    for (const std::vector<std::size_t>& bucket : band.buckets) {
      if (bucket.size() > 1) look_into(bucket, visit);
    }
  }
}

}  // namespace bloomery
