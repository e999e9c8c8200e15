#include "train/batch_upload.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/random.h"
#include "data/samples/language_model_dataset.h"
#include "device/op_clock.h"

namespace bloomery {
namespace {

struct NamedTensor {
  std::string_view name;
  Tensor Batch::*tensor;
};
constexpr std::array kTensors = {
    NamedTensor{"tokens", &Batch::tokens},       NamedTensor{"labels", &Batch::labels},
    NamedTensor{"loss_mask", &Batch::loss_mask}, NamedTensor{"positions", &Batch::positions},
    NamedTensor{"key_begin", &Batch::key_begin}, NamedTensor{"key_end", &Batch::key_end}};

Tensor Batch::*tensor_of(std::string_view name) {
  const auto found = std::ranges::find(kTensors, name, &NamedTensor::name);
  check(found != kTensors.end(), "no model reads ", name, " of the samples");
  return found->tensor;
}

// 0, 1, ... for each sequence.
Tensor counted(Stream& stream, std::int64_t num_sequences, std::int64_t length) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(num_sequences * length));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) % length);
  }
  return Tensor::from_host(stream, values, {num_sequences * length});
}

Tensor copied(Stream& stream, DType dtype, const void* values, std::int64_t count) {
  Tensor tensor = Tensor::empty(stream, dtype, {count});
  stream.copy(tensor.data(), values, tensor.bytes());
  return tensor;
}

}  // namespace

BatchUpload::BatchUpload(Stream& stream, const SampleFields& fields, std::int64_t num_samples)
    : stream_(stream) {
  const auto has = [&](std::string_view name) {
    return std::ranges::find(fields, name, &SampleField::name) != fields.end();
  };
  for (const SampleField& field : fields) {
    tensor_of(field.name);
    common_.length = field.name == "tokens" ? field.shape.numel() : common_.length;
  }
  check(common_.length > 0, "the samples have no tokens");
  common_.num_sequences = num_samples;
  common_.places = counted(stream, 1, common_.length);
  if (!has("positions")) {
    common_.positions = counted(stream, num_samples, common_.length);
  }
  if (has("key_begin") && !has("key_end")) {
    const std::vector<std::int32_t> ends(static_cast<std::size_t>(common_.num_tokens()),
                                         static_cast<std::int32_t>(common_.length));
    common_.key_end = Tensor::from_host(stream, ends, {common_.num_tokens()});
  }
}

Batch BatchUpload::enqueue(const HostBatch& host) const {
  Batch batch = common_;
  for (const SampleField& field : host.fields()) {
    batch.*tensor_of(field.name) =
        copied(stream_, field.dtype, host.data(field), host.num_samples() * field.shape.numel());
  }
  batch.samples = copied(stream_, DType::int64, host.samples().data(), host.num_samples());
  return batch;
}

Batch upload(const HostBatch& host, Stream& stream) {
  const OpScope scope(stream, "upload", OpKind::data);
  Batch batch = BatchUpload(stream, host.fields(), host.num_samples()).enqueue(host);
  stream.synchronize();
  return batch;
}

HostBatch random_batch(std::int64_t num_sequences, std::int64_t length, std::int64_t vocabulary,
                       std::uint64_t seed, std::int64_t first_sample) {
  HostBatch batch(DeviceKind::cpu, language_model_fields(length, {}), num_sequences);
  const RandomKey key = random_key(seed, "tokens");
  for (std::int64_t b = 0; b < num_sequences; ++b) {
    batch.samples()[b] = first_sample + b;
    const auto token = [&](std::int64_t s) {
      const auto index = static_cast<std::uint64_t>((first_sample + b) * (length + 1) + s);
      return static_cast<std::int32_t>(random_uniform(key, index) *
                                       static_cast<double>(vocabulary));
    };
    const auto tokens = Sample(batch, b).array<std::int32_t>("tokens");
    const auto labels = Sample(batch, b).array<std::int32_t>("labels");
    for (std::int64_t s = 0; s < length; ++s) {
      tokens[s] = token(s);
      labels[s] = token(s + 1);
    }
  }
  return batch;
}

}  // namespace bloomery
