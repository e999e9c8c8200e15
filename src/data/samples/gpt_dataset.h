// The samples of one split of one corpus: seq_length + 1 tokens cut from shuffled documents.
#pragma once

#include <memory>
#include <optional>

#include "data/indexed_corpus.h"
#include "data/samples/gpt_index_cache.h"
#include "data/samples/sample_source.h"

namespace bloomery {

struct GptDatasetOptions {
  std::string prefix;  // as typed: it is part of the cache's name
  Split split = Split::train;
  std::string split_text;  // as typed
  std::int64_t num_samples = 0, seq_length = 0, seed = 1234;
  std::optional<std::int64_t> exact_epochs;
  std::string cache_folder;  // --data-cache-path
};

class GptDataset : public SampleSource {
 public:
  // `documents` are sequences of the corpus.
  GptDataset(std::shared_ptr<const IndexedCorpus> corpus, const SplitRange& documents,
             const GptDatasetOptions& options, const Log& log);

  std::int64_t size() const override { return index_->num_samples(); }
  std::int64_t num_tokens() const override { return plan_.seq_length + 1; }
  void read(std::int64_t k, std::span<TokenId> out) const override;
  const std::string& description() const override { return description_; }

  const GptIndexPlan& plan() const { return plan_; }

 private:
  std::shared_ptr<const IndexedCorpus> corpus_;
  SplitRange documents_;
  GptIndexPlan plan_;
  std::string description_;
  std::unique_ptr<GptIndex> index_;
};

}  // namespace bloomery
