#include "train/host_batch.h"

#include <numeric>

#include "base/random.h"
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

}  // namespace bloomery
