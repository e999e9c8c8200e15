// The samples of one split of one corpus: seq_length + 1 tokens cut from shuffled documents.
#pragma once

#include <memory>

#include "corpus/indexed_corpus.h"
#include "samples/datasets.h"
#include "samples/gpt_index_cache.h"

namespace bloomery {

class GptDataset : public Dataset {
 public:
  // `documents` are sequences of the corpus.
  GptDataset(std::shared_ptr<const IndexedCorpus> corpus, const SplitRange& documents,
             const CorpusRequest& request, std::int64_t seq_length, std::int64_t seed,
             const Log& log);

  std::int64_t size() const override { return index_->num_samples(); }
  const SampleFields& fields() const override { return fields_; }
  void read(std::int64_t k, const Sample& out) const override;
  const std::string& description() const override { return description_; }

 private:
  std::shared_ptr<const IndexedCorpus> corpus_;
  SplitRange documents_;
  SampleFields fields_;  // tokens alone
  std::string description_;
  std::unique_ptr<GptIndex> index_;
};

// Texts for LanguageModelDataset.
MakeDataset gpt_samples(std::int64_t seq_length, std::int64_t seed);

}  // namespace bloomery
