// Duplicates as Megatron's find_duplicates looks for them: MinHash of windows of 5 bytes in bands,
// then the Jaccard similarity of windows of 5 characters. All texts are kept in memory, as there;
// data/dedup does with little.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace bloomery {

enum class Jaccard { by_union, by_smaller, by_larger };

struct FindDuplicatesOptions {
  std::int64_t seed = 1234;
  int num_bands = 10, num_seeds = 100;
  int heuristic_iter = 1;  // rounds in a bucket; -1: until it is empty
  Jaccard jaccard = Jaccard::by_union;
};

// Of the least hashes of all windows of 5 bytes, a number for each seed.
std::vector<std::uint32_t> byte_fingerprint(std::string_view text,
                                            std::span<const std::uint32_t> seeds);
std::vector<std::uint32_t> fingerprint_seeds(const FindDuplicatesOptions& options);

// Windows of 5 characters as sorted hashes; the last window is left out, as in the original.
std::vector<std::uint64_t> shingles(std::string_view text);
double similarity(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b,
                  Jaccard kind);

struct SimilarDocuments {
  std::size_t main = 0;
  std::vector<std::pair<std::size_t, double>> others;  // over 0.5
};

class DuplicateFinder {
 public:
  explicit DuplicateFinder(const FindDuplicatesOptions& options);

  // A text under an id that came before replaces it.
  void add(std::string id, std::string text, std::span<const std::uint32_t> fingerprint);
  const std::string& id(std::size_t document) const { return ids_[document]; }
  // Band after band, bucket after bucket in the order of their first documents. The main one of a
  // bucket is its first; the original draws it.
  void for_each(const std::function<void(const SimilarDocuments&)>& visit) const;

 private:
  void look_into(std::vector<std::size_t> bucket,
                 const std::function<void(const SimilarDocuments&)>& visit) const;

  const FindDuplicatesOptions options_;
  std::vector<std::string> ids_, texts_;
  std::unordered_map<std::string, std::size_t> numbers_;
  // Of each band: buckets by their hash, and the order in which they came.
  struct Band {
    std::unordered_map<std::uint64_t, std::size_t> numbers;
    std::vector<std::vector<std::size_t>> buckets;
  };
  std::vector<Band> bands_;
};

}  // namespace bloomery
