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
#include "device/stream.h"
#include "samples/loader.h"
#include "samples/sample_kind.h"
#include "train/step/batch_upload.h"

namespace bloomery {

class InstructData;

class TrainingData {
 public:
  // Samples of the kind that the model's family is fed. Opens the corpora and makes the index files
  // that are missing. `num_samples` is by Split; a split of which none are wanted is not opened.
  TrainingData(const SampleKind& kind, const SampleOptions& options,
               const std::array<std::int64_t, 3>& num_samples, const Tokenizer& tokenizer,
               const Log& log);
  // Of other kinds: by Split, null where there are none. Those of instruction data name it; it must
  // outlive this.
  TrainingData(const DataOptions& options, std::array<std::unique_ptr<Dataset>, 3> sources,
               const InstructData* instructions = nullptr);

  // The instruction data that the samples are of; null: they are of corpora.
  const InstructData* instructions() const { return instructions_; }
  // Null when there are no data for this split.
  const Dataset* source(Split split) const { return sources_[index(split)].get(); }
  const DataOptions& options() const { return options_; }
  // From here on a curriculum chooses the samples of training.
  void choose_by(const CurriculumOptions& curriculum, std::int64_t global_batch);
  // Null for splits in their own order.
  std::shared_ptr<const CurriculumOrder> curriculum(Split split) const {
    return split == Split::train ? curriculum_ : nullptr;
  }
  const DocumentRules& document_rules() const { return document_rules_; }
  // What a checkpoint keeps, to notice on resuming that the samples are others: split -> hash.
  std::map<std::string, std::string> index_hashes() const;

 private:
  static std::size_t index(Split split) { return static_cast<std::size_t>(split); }

  DataOptions options_;
  const InstructData* instructions_ = nullptr;
  DocumentRules document_rules_;
  std::array<std::unique_ptr<Dataset>, 3> sources_;
  std::shared_ptr<const CurriculumOrder> curriculum_;
};

struct FeedOptions {
  std::int64_t micro_batch = 1;
  std::int64_t data_rank = 0, data_ranks = 1;
  std::int64_t consumed_samples = 0;  // of all ranks, where to start
  std::int64_t vocabulary = 0;        // of the model
  bool reshape = false;               // what is cut becomes rows, instead of losing its end
  SequenceShare share;                // what of each sequence this rank holds
};

// Micro-batches of one rank, on its device. Copies run in the stream; the host memory behind them
// is kept until they are over.
class BatchFeed {
 public:
  // `data` and `stream` must outlive it.
  BatchFeed(const TrainingData& data, Split split, const FeedOptions& options, Stream& stream);

  // This rank's share of the whole samples (0), or of the first `length` tokens of each; with
  // FeedOptions::reshape of rows of that length. An Error when the data are used up or have tokens
  // that the vocabulary lacks, which a GPU would not notice.
  Batch next(std::int64_t length = 0);

 private:
  struct InCopy {
    std::shared_ptr<const HostBatch> host;  // the samples, or what was cut of them
    std::unique_ptr<Event> copied;
  };
  void check_tokens(const HostBatch& host) const;
  // Memory of batches that were cut, used in turn.
  using Spare = std::deque<std::shared_ptr<HostBatch>>;
  std::shared_ptr<HostBatch> take(Spare& spare, const SampleFields& fields, std::int64_t samples);
  std::shared_ptr<const HostBatch> rows(const HostBatch& whole, std::int64_t length);
  void prepare_upload(const HostBatch& host, std::int64_t length);

  Stream& stream_;
  std::string name_;
  std::int64_t vocabulary_;
  std::optional<DocumentRules> reshape_;  // samples are cut into rows, by these rules
  Sampler sampler_;
  Loader loader_;
  const SequenceShare share_;
  std::unique_ptr<BatchUpload> upload_;  // of batches as the last one
  SampleFields uploaded_;                // its fields
  std::int64_t uploaded_samples_ = 0, uploaded_length_ = 0;
  Spare spare_rows_, spare_parts_;
  std::deque<InCopy> in_copy_;
};

}  // namespace bloomery
