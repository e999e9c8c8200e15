// Which sentences make up each BERT or T5 sample, drawn exactly as Megatron-DeepSpeed's helper does
// (docs/formats.md, "Samples").
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "samples/split.h"

namespace bloomery {

class IndexedCorpus;

// Megatron's stand-ins for "no limit"; a limit with this value is left out of the file name.
inline constexpr std::int64_t kAnyEpochs = INT32_MAX - 1;
inline constexpr std::int64_t kAnySamples = INT64_MAX - 1;

// A document with a longer sentence is left out; of BERT and T5 unless it is its only one.
inline constexpr std::int32_t kLongestSentence = 512;

struct MappingOptions {
  std::int64_t num_epochs = kAnyEpochs;
  std::int64_t max_samples = kAnySamples;
  std::int64_t max_length = 0;  // tokens of text: seq-length less the special tokens
  double short_seq_prob = 0.1;
  std::int64_t seed = 1234;
  std::int64_t min_sentences = 1;  // 2 for BERT with the binary head
  bool exact_epochs = false;       // --train-data-exact-num-epochs decided num_epochs
};

// Sentences [0, 1) .. of row {first, last, target}: text of the sentences [first, last), cut to
// `target` tokens. T: std::uint32_t, or std::uint64_t for corpora of 2^32 sentences and more.
template <class T>
using MappingRow = std::array<T, 3>;

// Documents as Megatron holds them: document d has the sentences [borders[d], borders[d + 1]) of
// which `lengths` tells the tokens.
struct Sentences {
  std::vector<std::int64_t> borders;
  std::vector<std::int32_t> lengths;
};

Sentences sentences_of(const IndexedCorpus& corpus, const SplitRange& documents);

// `lengths` begins with the sentence borders.front(). Repeats the documents until max_samples or
// num_epochs are reached (whole epochs), then shuffles.
template <class T>
std::vector<MappingRow<T>> build_mapping(const Sentences& sentences, const MappingOptions& options);

extern template std::vector<MappingRow<std::uint32_t>> build_mapping(const Sentences&,
                                                                     const MappingOptions&);
extern template std::vector<MappingRow<std::uint64_t>> build_mapping(const Sentences&,
                                                                     const MappingOptions&);

// PREFIX_NAME_indexmap_{..}.npy, Megatron's name for the mapping's file beside the data.
std::string mapping_path(const std::string& prefix, Split split, const MappingOptions& options);

}  // namespace bloomery
