// The arrays of a GPT split on disk, under Megatron-DeepSpeed's names, shared by all ranks.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/log.h"
#include "corpus/npy.h"
#include "samples/gpt_index.h"

namespace bloomery {

class IndexedCorpus;

// What tells one index from another. The prefix and the split string count as they were typed.
struct GptIndexKey {
  std::string prefix;
  std::string name;  // train, valid or test
  std::int64_t num_samples = 0, num_epochs = 0, seq_length = 0, seed = 0;
  std::string split;

  std::string description() const;  // what the .dsc file holds
  std::string hash() const;         // the names of the files begin with it
};

// Builds the arrays and writes them to STEM_doc_idx.npy, STEM_sample_idx.npy and
// STEM_shuffle_idx.npy. Memory: 4 bytes for each entry of the document index and of the shuffle
// index; the sample index goes straight to its file.
void write_gpt_index(const std::filesystem::path& stem, std::span<const std::int32_t> lengths,
                     const SplitRange& documents, const GptIndexPlan& plan, std::int64_t seed);

// The arrays, in their files.
class GptIndex {
 public:
  // An Error says how the files differ from what the plan needs.
  GptIndex(const std::filesystem::path& stem, std::int64_t num_documents, const GptIndexPlan& plan);

  std::int64_t num_samples() const { return samples_.shape()[0] - 1; }
  // Writes the documents from a position of the document index on to the end of `out`, which is
  // filled unless fewer follow; returns how many do.
  std::size_t read_documents(std::int64_t position, std::span<std::int32_t> out) const;
  SampleStart start(std::int64_t row) const;
  std::int64_t row(std::int64_t k) const;                                // of the k-th sample
  const std::filesystem::path& path() const { return samples_.path(); }  // for messages

 private:
  NpyFile documents_, samples_, shuffle_;
};

// Finds or builds the index (index_files.h) in the folder `index-cache` beside the data or in
// `cache_folder`, if it is given.
std::unique_ptr<GptIndex> open_gpt_index(const GptIndexKey& key, const IndexedCorpus& corpus,
                                         const SplitRange& documents, const GptIndexPlan& plan,
                                         const std::string& cache_folder, const Log& log);

}  // namespace bloomery
