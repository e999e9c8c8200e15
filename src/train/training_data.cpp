#include "train/training_data.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "base/error.h"
#include "checkpoint/hash.h"
#include "data/samples/datasets.h"
#include "device/op_clock.h"

namespace bloomery {
namespace {

constexpr std::array kSplitNames = {"training", "validation", "test"};
constexpr std::size_t kBatchesInCopy = 8;

const char* name_of(Split split) { return kSplitNames[static_cast<std::size_t>(split)]; }

SamplerOptions sampler_options(const TrainingData& data, Split split, const FeedOptions& o) {
  const SampleSource* source = data.source(split);
  check(source != nullptr, "there are no ", name_of(split), " data");
  return {.type = data.options().dataloader_type,
          .total_samples = source->size(),
          .micro_batch_size = o.micro_batch,
          .data_parallel_rank = o.data_rank,
          .data_parallel_size = o.data_ranks,
          .data_sharding = !data.options().no_data_sharding};
}

template <class T>
Tensor copied(Stream& stream, std::span<T> values) {
  Tensor tensor = Tensor::empty(stream, dtype_of<T>, {static_cast<std::int64_t>(values.size())});
  stream.copy(tensor.data(), values.data(), values.size_bytes());
  return tensor;
}

}  // namespace

TrainingData::TrainingData(const DataOptions& options, std::int64_t seed,
                           const std::array<std::int64_t, 3>& num_samples,
                           std::optional<TokenId> end_of_document, const Log& log)
    : options_(options), rules_(document_rules(options, end_of_document)) {
  DatasetBuilder builder(options, seed, log);
  for (const Split split : kSplits) {
    if (const std::int64_t wanted = num_samples[index(split)]; wanted > 0) {
      sources_[index(split)] = builder.build(split, wanted);
    }
  }
}

std::map<std::string, std::string> TrainingData::index_hashes() const {
  std::map<std::string, std::string> hashes;
  for (const Split split : kSplits) {
    if (const SampleSource* samples = source(split)) {
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
               .consumed_samples = options.consumed_samples,
               .rules = data.rules()}) {
  const std::int64_t length = data.source(split)->num_tokens() - 1;
  std::vector<std::int32_t> places(static_cast<std::size_t>(length));
  std::iota(places.begin(), places.end(), 0);
  places_ = Tensor::from_host(stream, places, {length});
  if (data.rules().reset_attention_mask) {
    const std::int64_t tokens = options.micro_batch * length;
    const std::vector<std::int32_t> ends(static_cast<std::size_t>(tokens),
                                         static_cast<std::int32_t>(length));
    key_end_ = Tensor::from_host(stream, ends, {tokens});
  }
}

Batch BatchFeed::next() {
  const OpScope scope(stream_, "batch", OpKind::data);
  std::shared_ptr<const GptBatch> host = loader_.next();
  check(host != nullptr, "the ", name_, " data are used up after ", loader_.consumed_samples(),
        " of ", sampler_.options().total_samples,
        " samples: give more data, or ask for fewer steps");
  check_tokens(*host);
  Batch batch = upload(*host);
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

void BatchFeed::check_tokens(const GptBatch& host) const {
  std::uint32_t largest = 0;  // what is negative counts as large
  for (const auto& ids : {host.tokens, host.labels}) {
    for (const std::int32_t id : ids) {
      largest = std::max(largest, static_cast<std::uint32_t>(id));
    }
  }
  check(static_cast<std::int64_t>(largest) < vocabulary_, "the ", name_, " data have the token id ",
        static_cast<std::int32_t>(largest), ", but the tokenizer's ids are 0 to ", vocabulary_ - 1,
        ": they were made with another tokenizer; give that one, or preprocess the text again");
}

Batch BatchFeed::upload(const GptBatch& host) {
  Batch batch;
  batch.num_sequences = host.num_sequences();
  batch.length = host.length();
  batch.tokens = copied(stream_, host.tokens);
  batch.labels = copied(stream_, host.labels);
  batch.positions = copied(stream_, host.positions);
  batch.samples = copied(stream_, host.samples);
  if (host.has_key_begin) {
    batch.key_begin = copied(stream_, host.key_begin);
    batch.key_end = key_end_;
  }
  if (host.has_loss_mask) {
    batch.loss_mask = copied(stream_, host.loss_mask);
  }
  batch.places = places_;
  return batch;
}

}  // namespace bloomery
