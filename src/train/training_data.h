// The data of a run: the samples of its splits, shared by the ranks of a process, and each rank's
// way through them.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/log.h"
#include "data/samples/loader.h"
#include "data/samples/sample_kind.h"
#include "device/stream.h"
#include "train/batch_upload.h"

namespace bloomery {

class TrainingData {
 public:
  // Samples of the kind that the model's family is fed. Opens the corpora and makes the index files
  // that are missing. `num_samples` is by Split; a split of which none are wanted is not opened.
  TrainingData(const SampleKind& kind, const SampleOptions& options,
               const std::array<std::int64_t, 3>& num_samples, const Tokenizer& tokenizer,
               const Log& log);

  // Null when there are no data for this split.
  const Dataset* source(Split split) const { return sources_[index(split)].get(); }
  const DataOptions& options() const { return options_; }
  // What a checkpoint keeps, to notice on resuming that the samples are others: split -> hash.
  std::map<std::string, std::string> index_hashes() const;

 private:
  static std::size_t index(Split split) { return static_cast<std::size_t>(split); }

  DataOptions options_;
  std::array<std::unique_ptr<Dataset>, 3> sources_;
};

struct FeedOptions {
  std::int64_t micro_batch = 1;
  std::int64_t data_rank = 0, data_ranks = 1;
  std::int64_t consumed_samples = 0;  // of all ranks, where to start
  std::int64_t vocabulary = 0;        // of the model
};

// Micro-batches of one rank, on its device. Copies run in the stream; the host memory behind them
// is kept until they are over.
class BatchFeed {
 public:
  // `data` and `stream` must outlive it.
  BatchFeed(const TrainingData& data, Split split, const FeedOptions& options, Stream& stream);

  // An Error when the data are used up or have tokens that the vocabulary lacks, which a GPU would
  // not notice.
  Batch next();

 private:
  struct InCopy {
    std::shared_ptr<const HostBatch> host;
    std::unique_ptr<Event> copied;
  };
  void check_tokens(const HostBatch& host) const;

  Stream& stream_;
  std::string name_;
  std::int64_t vocabulary_;
  Sampler sampler_;
  Loader loader_;
  BatchUpload upload_;
  std::deque<InCopy> in_copy_;
};

}  // namespace bloomery
