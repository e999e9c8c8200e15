#include "train/training_data.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "device/op_clock.h"

namespace bloomery {
namespace {

constexpr std::array kSplitNames = {"training", "validation", "test"};
constexpr std::size_t kBatchesInCopy = 8;

const char* name_of(Split split) { return kSplitNames[static_cast<std::size_t>(split)]; }

SamplerOptions sampler_options(const TrainingData& data, Split split, const FeedOptions& o) {
  const Dataset* source = data.source(split);
  check(source != nullptr, "there are no ", name_of(split), " data");
  return {.type = data.options().dataloader_type,
          .total_samples = source->size(),
          .micro_batch_size = o.micro_batch,
          .data_parallel_rank = o.data_rank,
          .data_parallel_size = o.data_ranks,
          .data_sharding = !data.options().no_data_sharding};
}

}  // namespace

TrainingData::TrainingData(const SampleKind& kind, const SampleOptions& options,
                           const std::array<std::int64_t, 3>& num_samples,
                           const Tokenizer& tokenizer, const Log& log)
    : options_(options.data) {
  DatasetBuilder builder(options_, kind.make(options, tokenizer), log);
  for (const Split split : kSplits) {
    if (const std::int64_t wanted = num_samples[index(split)]; wanted > 0) {
      sources_[index(split)] = builder.build(split, wanted);
    }
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
      sampler_(sampler_options(data, split, options)),
      loader_(*data.source(split), sampler_,
              {.device = stream.device().kind(),
               .num_workers = data.options().num_workers,
               .consumed_samples = options.consumed_samples}),
      upload_(stream, data.source(split)->fields(), options.micro_batch) {}

Batch BatchFeed::next() {
  const OpScope scope(stream_, "batch", OpKind::data);
  std::shared_ptr<const HostBatch> host = loader_.next();
  check(host != nullptr, "the ", name_, " data are used up after ", loader_.consumed_samples(),
        " of ", sampler_.options().total_samples,
        " samples: give more data, or ask for fewer steps");
  check_tokens(*host);
  Batch batch = upload_.enqueue(*host);
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
