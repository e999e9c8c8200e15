#include "train/gpt_rank.h"

#include <numeric>

#include "device/op_clock.h"

namespace bloomery {

Batch HostBatch::upload(Stream& stream) const {
  const OpScope scope(stream, "upload", OpKind::data);
  const Shape tokens_shape{num_sequences * length};
  Batch batch;
  batch.num_sequences = num_sequences;
  batch.length = length;
  batch.tokens = Tensor::from_host(stream, tokens, tokens_shape);
  batch.labels = Tensor::from_host(stream, labels, tokens_shape);
  batch.positions = Tensor::from_host(stream, positions, tokens_shape);
  if (!key_begin.empty()) {
    batch.key_begin = Tensor::from_host(stream, key_begin, tokens_shape);
    const std::vector<std::int32_t> key_end(key_begin.size(), static_cast<std::int32_t>(length));
    batch.key_end = Tensor::from_host(stream, key_end, tokens_shape);
  }
  if (!loss_mask.empty()) {
    batch.loss_mask = Tensor::from_host(stream, loss_mask, tokens_shape);
  }
  batch.samples = Tensor::from_host(stream, samples, {num_sequences});
  std::vector<std::int32_t> places(static_cast<std::size_t>(length));
  std::iota(places.begin(), places.end(), 0);
  batch.places = Tensor::from_host(stream, places, {length});
  return batch;
}

HostBatch random_batch(std::int64_t num_sequences, std::int64_t length, std::int64_t vocabulary,
                       std::uint64_t seed, std::int64_t first_sample) {
  HostBatch batch{.num_sequences = num_sequences, .length = length};
  const RandomKey key = random_key(seed, "tokens");
  for (std::int64_t b = 0; b < num_sequences; ++b) {
    batch.samples.push_back(first_sample + b);
    const auto token = [&](std::int64_t s) {
      const auto index = static_cast<std::uint64_t>((first_sample + b) * (length + 1) + s);
      return static_cast<std::int32_t>(random_uniform(key, index) *
                                       static_cast<double>(vocabulary));
    };
    for (std::int64_t s = 0; s < length; ++s) {
      batch.tokens.push_back(token(s));
      batch.labels.push_back(token(s + 1));
      batch.positions.push_back(static_cast<std::int32_t>(s));
    }
  }
  return batch;
}

GptRank::GptRank(const RankOptions& options, const MeshDegrees& degrees,
                 std::unique_ptr<Communicator> world)
    : options_(options),
      device_(std::make_unique<Device>(options.device)),
      stream_(std::make_unique<Stream>(*device_)),
      mesh_(std::make_unique<Mesh>(degrees, std::move(world))),
      model_(std::make_unique<Gpt>(options.model, *mesh_, options.dtype)) {
  // Of the tensor ranks that hold the same part, the first counts it in the gradient norm.
  const bool first = mesh_->coordinate(Axis::tensor) == 0;
  layout_ = std::make_unique<FlatLayout>(
      *stream_, model_->parameters(),
      FlatLayoutOptions{.dtype = options.dtype, .counted_in_norm = [first](const Parameter& p) {
                          return first || !(p.box == Box::whole(p.box.global));
                        }});
  layout_->initialize(options.seed);
  optimizer_ = std::make_unique<Optimizer>(*stream_, options.optimizer,
                                           std::vector<FlatShard>{layout_->shard()});
}

Context GptRank::context(const Batch& batch, Tape* tape) {
  return Context{.stream = *stream_,
                 .mesh = *mesh_,
                 .batch = batch,
                 .tape = tape,
                 .seed = options_.seed,
                 .training = options_.training};
}

std::vector<Tensor> GptRank::enqueue_gradients(std::span<const Batch> micro_batches) {
  layout_->begin_accumulation();
  const Tensor grad_scale = optimizer_->grad_scale(static_cast<std::int64_t>(micro_batches.size()));
  std::vector<Tensor> losses;
  for (Batch batch : micro_batches) {
    batch.grad_scale = grad_scale;
    Tape tape(*stream_);
    Context forward = context(batch, &tape);
    losses.push_back(model_->loss(forward).loss.data);
    if (tape_report_) {
      tape_report_ = {tape.describe(), tape.saved_bytes()};
    }
    tape.backward();
  }
  layout_->finish_accumulation();
  return losses;
}

void GptRank::enqueue_update(std::int64_t num_samples) {
  Communicator* const groups[] = {&mesh_->axis(Axis::tensor)};
  optimizer_->step(groups, num_samples);
}

double GptRank::accumulate(std::span<const HostBatch> micro_batches) {
  std::vector<Batch> batches;
  for (const HostBatch& host : micro_batches) {
    batches.push_back(host.upload(*stream_));
  }
  double sum = 0;
  const std::vector<Tensor> losses = enqueue_gradients(batches);
  const OpScope scope(*stream_, "read_loss", OpKind::wait);
  for (const Tensor& loss : losses) {
    sum += loss.dtype() == DType::fp64 ? loss.to_host<double>(*stream_).at(0)
                                       : loss.to_host<float>(*stream_).at(0);
  }
  return sum / static_cast<double>(micro_batches.size());
}

GptRank::Result GptRank::step(std::span<const HostBatch> micro_batches) {
  Result result;
  result.loss = accumulate(micro_batches);
  std::int64_t num_samples = 0;
  for (const HostBatch& batch : micro_batches) {
    num_samples += batch.num_sequences;
  }
  enqueue_update(num_samples);
  result.grad_norm = optimizer_->report(0).grad_norm;
  return result;
}

}  // namespace bloomery
