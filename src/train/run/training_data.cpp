#include "train/run/training_data.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "device/op_clock.h"
#include "samples/sequence_rows.h"

namespace bloomery {
namespace {

constexpr std::array kSplitNames = {"training", "validation", "test"};
constexpr std::size_t kBatchesInCopy = 8;

const char* name_of(Split split) { return kSplitNames[static_cast<std::size_t>(split)]; }

std::int64_t sequence_length(const HostBatch& batch) { return batch.find("tokens")->shape.numel(); }

SamplerOptions sampler_options(const TrainingData& data, Split split, const FeedOptions& o) {
  const Dataset* source = data.source(split);
  check(source != nullptr, "there are no ", name_of(split), " data");
  return {.type = data.options().dataloader_type,
          .total_samples = source->size(),
          .micro_batch_size = o.micro_batch,
          .data_parallel_rank = o.data_rank,
          .data_parallel_size = o.data_ranks,
          .data_sharding = !data.options().no_data_sharding,
          .curriculum = data.curriculum(split)};
}

}  // namespace

TrainingData::TrainingData(const SampleKind& kind, const SampleOptions& options,
                           const std::array<std::int64_t, 3>& num_samples,
                           const Tokenizer& tokenizer, const Log& log)
    : options_(options.data) {
  if (!kind.of_sentences) {
    document_rules_ = bloomery::document_rules(options_, tokenizer.special().eod);
  }
  DatasetBuilder builder(options_, kind.make(options, tokenizer), log);
  for (const Split split : kSplits) {
    if (const std::int64_t wanted = num_samples[index(split)]; wanted > 0) {
      sources_[index(split)] = builder.build(split, wanted);
    }
  }
}

TrainingData::TrainingData(const DataOptions& options,
                           std::array<std::unique_ptr<Dataset>, 3> sources,
                           const InstructData* instructions)
    : options_(options), instructions_(instructions), sources_(std::move(sources)) {}

void TrainingData::choose_by(const CurriculumOptions& curriculum, std::int64_t global_batch) {
  if (const Dataset* samples = source(Split::train)) {
    curriculum_ =
        std::make_shared<const CurriculumOrder>(curriculum, samples->size(), global_batch);
  }
}

std::map<std::string, std::string> TrainingData::index_hashes() const {
  std::map<std::string, std::string> hashes;
  for (const Split split : kSplits) {
    if (const Dataset* samples = source(split)) {
      hashes[name_of(split)] = hash_text(xxh3(samples->description()));
    }
  }
  return hashes;
}

BatchFeed::BatchFeed(const TrainingData& data, Split split, const FeedOptions& options,
                     Stream& stream)
    : stream_(stream),
      name_(name_of(split)),
      vocabulary_(options.vocabulary),
      reshape_(options.reshape ? std::optional(data.document_rules()) : std::nullopt),
      sampler_(sampler_options(data, split, options)),
      loader_(*data.source(split), sampler_,
              {.device = stream.device().kind(),
               .num_workers = data.options().num_workers,
               .consumed_samples = options.consumed_samples}),
      share_(options.share) {}

std::shared_ptr<HostBatch> BatchFeed::take(Spare& spare, const SampleFields& fields,
                                           std::int64_t samples) {
  std::shared_ptr<HostBatch> batch;
  if (!spare.empty() && spare.front().use_count() == 1) {  // its copy is over
    batch = std::move(spare.front());
    spare.pop_front();
  }
  if (!batch || batch->fields() != fields || batch->num_samples() != samples) {
    batch = std::make_shared<HostBatch>(stream_.device().kind(), fields, samples);
  }
  spare.push_back(batch);
  return batch;
}

std::shared_ptr<const HostBatch> BatchFeed::rows(const HostBatch& whole, std::int64_t length) {
  const auto rows = take(spare_rows_, cut_fields(whole.fields(), BatchCut::first_tokens(length)),
                         reshaped_rows(whole.num_samples(), sequence_length(whole), length));
  copy_rows(whole, *rows, *reshape_);
  return rows;
}

// What batches of a shape have in common is made when the shape changes.
void BatchFeed::prepare_upload(const HostBatch& host, std::int64_t length) {
  if (!upload_ || uploaded_ != host.fields() || uploaded_samples_ != host.num_samples() ||
      uploaded_length_ != length) {
    upload_ =
        std::make_unique<BatchUpload>(stream_, host.fields(), host.num_samples(), share_, length);
    uploaded_ = host.fields();
    uploaded_samples_ = host.num_samples();
    uploaded_length_ = length;
  }
}

Batch BatchFeed::next(std::int64_t length) {
  const OpScope scope(stream_, "batch", OpKind::data);
  std::shared_ptr<const HostBatch> host = loader_.next();
  check(host != nullptr, "the ", name_, " data are used up after ", loader_.consumed_samples(),
        " of ", sampler_.options().total_samples,
        " samples: give more data, or ask for fewer steps");
  check_tokens(*host);
  if (reshape_ && length > 0 && length < sequence_length(*host)) {
    host = rows(*host, length);
  }
  prepare_upload(*host, length);
  if (upload_->cuts()) {
    const auto part = take(spare_parts_, upload_->fields(), host->num_samples());
    upload_->cut(*host, *part);
    host = part;
  }
  Batch batch = upload_->enqueue(*host);
  if (stream_.on_cuda()) {
    auto event = std::make_unique<Event>(stream_.device());
    event->record(stream_);
    in_copy_.push_back({std::move(host), std::move(event)});
    if (in_copy_.size() > kBatchesInCopy) {
      in_copy_.front().copied->synchronize();
      in_copy_.pop_front();
    }
  }
  return batch;
}

void BatchFeed::check_tokens(const HostBatch& host) const {
  std::uint32_t largest = 0;  // what is negative counts as large
  for (const char* name : {"tokens", "labels", "encoder.tokens"}) {
    if (host.find(name) == nullptr) {
      continue;
    }
    // Where a sample says which tokens count, the others have no label.
    const bool may_lack = name == std::string_view("labels") && host.find("loss_mask") != nullptr;
    for (const std::int32_t id : host.array<std::int32_t>(name)) {
      largest = std::max(largest, may_lack && id == -1 ? 0 : static_cast<std::uint32_t>(id));
    }
  }
  check(static_cast<std::int64_t>(largest) < vocabulary_, "the ", name_, " data have the token id ",
        static_cast<std::int32_t>(largest), ", but the tokenizer's ids are 0 to ", vocabulary_ - 1,
        ": they were made with another tokenizer; give that one, or preprocess the text again");
}

}  // namespace bloomery
