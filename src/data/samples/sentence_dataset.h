// BERT and T5 samples of one split of a corpus of sentences.
#pragma once

#include <memory>
#include <span>

#include "base/log.h"
#include "data/indexed_corpus.h"
#include "data/npy.h"
#include "data/samples/mapping.h"
#include "data/samples/t5_sample.h"

namespace bloomery {

// The mapping, kept beside the data under Megatron's name, which says neither the split string nor
// the least number of sentences: a file whose rows leave the split is noted and built again. Of
// several processes the first builds and the others wait and load. Where nothing can be written the
// mapping stays in memory.
class SentenceMapping {
 public:
  SentenceMapping(const IndexedCorpus& corpus, const std::string& prefix, Split split,
                  const SplitRange& documents, const MappingOptions& options, const Log& log);

  std::int64_t size() const;
  MappingRow<std::int64_t> row(std::int64_t k) const;

 private:
  template <class T>
  void open(const IndexedCorpus& corpus, const std::filesystem::path& path,
            const SplitRange& documents, const MappingOptions& options, const Log& log);
  template <class T>
  bool try_to_load(const std::filesystem::path& path, const SplitRange& sentences, const Log& log);

  std::vector<MappingRow<std::uint32_t>> narrow_;
  std::vector<MappingRow<std::uint64_t>> wide_;
  std::unique_ptr<NpyFile> file_;  // else one of the two above
};

struct SentenceDatasetOptions {
  std::string prefix;  // as typed
  Split split = Split::train;
  std::string split_text = "969, 30, 1";
  std::int64_t num_samples = 0;  // of the split
  std::int64_t seq_length = 0;   // of the encoder
  std::int64_t decoder_seq_length = 0;
  double mask_prob = 0.15, short_seq_prob = 0.1;
  std::int64_t seed = 1234;
  bool binary_head = true;
  std::optional<std::int64_t> exact_epochs;
};

// Samples are functions of (options, k) and may be made by several threads.
class BertDataset {
 public:
  BertDataset(std::shared_ptr<const IndexedCorpus> corpus, MaskingVocabulary vocabulary,
              const SentenceDatasetOptions& options, const Log& log);

  std::int64_t size() const { return mapping_.size(); }
  BertSample sample(std::int64_t k) const;

 private:
  std::shared_ptr<const IndexedCorpus> corpus_;
  MaskingVocabulary vocabulary_;
  SentenceDatasetOptions options_;
  SentenceMapping mapping_;
};

class T5Dataset {
 public:
  T5Dataset(std::shared_ptr<const IndexedCorpus> corpus, MaskingVocabulary vocabulary,
            const SentenceDatasetOptions& options, const Log& log);

  std::int64_t size() const { return mapping_.size(); }
  T5Sample sample(std::int64_t k) const;

 private:
  std::shared_ptr<const IndexedCorpus> corpus_;
  MaskingVocabulary vocabulary_;
  SentenceDatasetOptions options_;
  SentenceMapping mapping_;
};

}  // namespace bloomery
