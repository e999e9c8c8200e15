// Which sentences make up each block of text that a retriever learns from, cut exactly as
// Megatron-DeepSpeed's helper does (docs/formats.md, "Samples").
#pragma once

#include <array>
#include <memory>

#include "samples/datasets.h"
#include "samples/mapping.h"
#include "samples/mapping_file.h"

namespace bloomery {

struct BlockMappingOptions {
  std::int64_t num_epochs = kAnyEpochs;
  std::int64_t max_samples = kAnySamples;
  std::int64_t seq_length = 0;  // of which 3 places are for special tokens
  std::int64_t seed = 1234;
  bool one_sentence = false;  // blocks of one sentence are blocks, too
};

// Sentences [first, end) of a document of the split, whose number in it is `document`; `block`
// counts the blocks of an epoch.
template <class T>
using BlockRow = std::array<T, 4>;  // first, end, document, block

// `title_lengths` of each document: what the title of a block takes of its length.
template <class T>
std::vector<BlockRow<T>> build_block_mapping(const Sentences& sentences,
                                             std::span<const std::int32_t> title_lengths,
                                             const BlockMappingOptions& options);

extern template std::vector<BlockRow<std::uint32_t>> build_block_mapping(
    const Sentences&, std::span<const std::int32_t>, const BlockMappingOptions&);
extern template std::vector<BlockRow<std::uint64_t>> build_block_mapping(
    const Sentences&, std::span<const std::int32_t>, const BlockMappingOptions&);

// PREFIX_NAME_indexmap_{..}.npy, Megatron's name for the mapping's file beside the data.
std::string block_mapping_path(const std::string& prefix, Split split,
                               const BlockMappingOptions& options);

// The mapping of a split. `titles` has a title per document, that of the split's first one at
// `first_title`.
class BlockMapping {
 public:
  BlockMapping(const IndexedCorpus& corpus, const IndexedCorpus& titles, std::int64_t first_title,
               const CorpusRequest& request, const SplitRange& documents,
               const BlockMappingOptions& options, const Log& log);

  std::int64_t size() const { return file_->size(); }
  BlockRow<std::int64_t> row(std::int64_t k) const;
  // Rows from k on, as many as `rows` has.
  void read(std::int64_t k, std::span<BlockRow<std::int64_t>> rows) const;

 private:
  SplitRange documents_, sentences_;
  std::unique_ptr<MappingFile> file_;
};

}  // namespace bloomery
