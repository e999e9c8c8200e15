#include "train/step/batch_upload.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/random.h"
#include "device/op_clock.h"
#include "samples/language_model_dataset.h"

namespace bloomery {
namespace {

struct NamedTensor {
  std::string_view name;
  Tensor Batch::*tensor;
};
constexpr std::array kTensors = {NamedTensor{"tokens", &Batch::tokens},
                                 NamedTensor{"labels", &Batch::labels},
                                 NamedTensor{"loss_mask", &Batch::loss_mask},
                                 NamedTensor{"positions", &Batch::positions},
                                 NamedTensor{"token_types", &Batch::token_types},
                                 NamedTensor{"is_random", &Batch::is_random},
                                 NamedTensor{"classes", &Batch::classes},
                                 NamedTensor{"scores", &Batch::scores},
                                 NamedTensor{"sample_weights", &Batch::sample_weights},
                                 NamedTensor{"reference", &Batch::reference},
                                 NamedTensor{"key_begin", &Batch::key_begin},
                                 NamedTensor{"key_end", &Batch::key_end},
                                 NamedTensor{"encoder_key_begin", &Batch::encoder_key_begin},
                                 NamedTensor{"encoder_key_end", &Batch::encoder_key_end}};
constexpr std::string_view kEncoder = "encoder.";

bool is_encoders(const SampleField& field) { return field.name.starts_with(kEncoder); }

Tensor Batch::*tensor_of(std::string_view name) {
  const std::string_view own = name.starts_with(kEncoder) ? name.substr(kEncoder.size()) : name;
  const auto found = std::ranges::find(kTensors, own, &NamedTensor::name);
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

Tensor constant(Stream& stream, std::int64_t count, std::int64_t value) {
  const std::vector<std::int32_t> values(static_cast<std::size_t>(count),
                                         static_cast<std::int32_t>(value));
  return Tensor::from_host(stream, values, {count});
}

// A range of keys of which the samples give one end only: the other is that of the sequence.
void complete_range(Stream& stream, std::int64_t num_tokens, std::int64_t num_keys, bool has_begin,
                    bool has_end, Tensor& begin, Tensor& end) {
  if (has_end && !has_begin) {
    begin = constant(stream, num_tokens, 0);
  }
  if (has_begin && !has_end) {
    end = constant(stream, num_tokens, num_keys);
  }
}

// Each sequence of a sample has a number of its own.
Tensor uploaded_samples(Stream& stream, const HostBatch& host, std::int64_t num_sequences) {
  if (num_sequences == host.num_samples()) {
    return copied(stream, DType::int64, host.samples().data(), num_sequences);
  }
  const std::int64_t each = num_sequences / host.num_samples();
  std::vector<std::int64_t> numbers;
  for (const std::int64_t sample : host.samples()) {
    for (std::int64_t i = 0; i < each; ++i) {
      numbers.push_back(sample * each + i);
    }
  }
  return Tensor::from_host(stream, numbers, {num_sequences});
}

bool has(const SampleFields& fields, const std::string& name) {
  return std::ranges::find(fields, name, &SampleField::name) != fields.end();
}

// What all batches have, of fields whose names start with `prefix`.
Batch common_part(Stream& stream, const SampleFields& fields, std::string_view prefix,
                  std::int64_t num_samples) {
  const auto given = [&](const char* name) { return has(fields, concat(prefix, name)); };
  check(given("tokens"), "the samples have no ", prefix, "tokens");
  const Shape& shape =
      std::ranges::find(fields, concat(prefix, "tokens"), &SampleField::name)->shape;
  Batch batch;
  batch.length = shape.back();
  batch.num_sequences =
      num_samples * (shape.numel() / batch.length);  // of a sample there may be several
  batch.places = counted(stream, 1, batch.length);
  if (!given("positions")) {
    batch.positions = counted(stream, batch.num_sequences, batch.length);
  }
  complete_range(stream, batch.num_tokens(), batch.length, given("key_begin"), given("key_end"),
                 batch.key_begin, batch.key_end);
  return batch;
}

}  // namespace

BatchUpload::BatchUpload(Stream& stream, const SampleFields& fields, std::int64_t num_samples)
    : stream_(stream), common_(common_part(stream, fields, "", num_samples)) {
  for (const SampleField& field : fields) {
    tensor_of(field.name);
  }
  const bool begin = has(fields, "encoder_key_begin"), end = has(fields, "encoder_key_end");
  if (begin || end || std::ranges::any_of(fields, is_encoders)) {
    encoder_ = common_part(stream, fields, kEncoder, num_samples);
    complete_range(stream, common_.num_tokens(), encoder_->length, begin, end,
                   common_.encoder_key_begin, common_.encoder_key_end);
  }
}

Batch BatchUpload::enqueue(const HostBatch& host) const {
  Batch batch = common_;
  const auto encoder = encoder_ ? std::make_shared<Batch>(*encoder_) : nullptr;
  for (const SampleField& field : host.fields()) {
    (is_encoders(field) ? *encoder : batch).*tensor_of(field.name) =
        copied(stream_, field.dtype, host.data(field), host.num_samples() * field.shape.numel());
  }
  batch.samples = uploaded_samples(stream_, host, batch.num_sequences);
  if (encoder) {
    encoder->samples = encoder->num_sequences == batch.num_sequences
                           ? batch.samples
                           : uploaded_samples(stream_, host, encoder->num_sequences);
    batch.encoder = encoder;
  }
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

HostBatch random_batch(const SampleFields& fields, std::int64_t num_sequences,
                       std::int64_t vocabulary, std::uint64_t seed, std::int64_t first_sample) {
  HostBatch batch(DeviceKind::cpu, fields, num_sequences);
  for (std::int64_t b = 0; b < num_sequences; ++b) {
    const std::int64_t sample = batch.samples()[b] = first_sample + b;
    for (const SampleField& field : fields) {
      const std::int64_t count = field.shape.numel();
      const auto draw = [&, key = random_key(seed, field.name)](std::int64_t i) {
        return random_uniform(key, static_cast<std::uint64_t>(sample * count + i));
      };
      if (field.dtype == DType::fp32) {
        for (std::int64_t i = 0; i < count; ++i) {
          Sample(batch, b).array<float>(field.name)[i] = draw(i) < 0.5 ? 1.0f : 0.0f;
        }
        continue;
      }
      const bool is_token = field.name.ends_with("tokens") || field.name == "labels";
      const bool is_end = field.name.ends_with("key_end");
      const double limit = is_token ? static_cast<double>(vocabulary) : 2.0;
      for (std::int64_t i = 0; i < count; ++i) {
        const double length = is_end ? static_cast<double>(field.shape.back()) : 0;
        const double drawn = is_end ? (1 + draw(0)) / 2 * length : draw(i) * limit;
        Sample(batch, b).array<std::int32_t>(field.name)[i] = static_cast<std::int32_t>(drawn);
      }
    }
  }
  return batch;
}

}  // namespace bloomery
