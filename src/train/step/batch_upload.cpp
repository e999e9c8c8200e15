#include "train/step/batch_upload.h"

#include <algorithm>
#include <utility>

#include "autograd/batch_fields.h"
#include "base/random.h"
#include "device/op_clock.h"
#include "samples/language_model_dataset.h"

namespace bloomery {
namespace {

constexpr std::string_view kEncoder = "encoder.";

bool is_encoders(const SampleField& field) { return field.name.starts_with(kEncoder); }

Tensor Batch::*tensor_of(const SampleField& field) {
  const BatchField* const known =
      find_batch_field(is_encoders(field) ? field.name.substr(kEncoder.size()) : field.name);
  check(known != nullptr, "no model reads ", field.name, " of the samples");
  check(known->dtype == field.dtype, field.name, " of the samples is ", field.dtype,
        ", but models read ", known->dtype);
  return known->tensor;
}

Tensor from_host(Stream& stream, const std::vector<std::int32_t>& values) {
  return Tensor::from_host(stream, values, {std::ssize(values)});
}

Tensor constant(Stream& stream, std::int64_t count, std::int64_t value) {
  return from_host(stream, std::vector<std::int32_t>(static_cast<std::size_t>(count),
                                                     static_cast<std::int32_t>(value)));
}

// Of so many sequences, one after another.
std::vector<std::int32_t> places(const Pieces& pieces, std::int64_t num_sequences) {
  std::vector<std::int32_t> values;
  for (std::int64_t sequence = 0; sequence < num_sequences; ++sequence) {
    for (const Piece& piece : pieces) {
      for (std::int64_t i = 0; i < piece.count; ++i) {
        values.push_back(static_cast<std::int32_t>(piece.begin + i));
      }
    }
  }
  return values;
}

// A batch of these pieces of each sequence, with its wholes: those that follow.
Batch located(Stream& stream, std::int64_t num_sequences, std::span<const Pieces> pieces) {
  Batch batch{.num_sequences = num_sequences, .length = num_tokens(pieces.front())};
  batch.places = from_host(stream, places(pieces.front(), 1));
  if (pieces.size() > 1) {
    batch.whole = std::make_shared<const Batch>(located(stream, num_sequences, pieces.subspan(1)));
  }
  return batch;
}

Tensor copied(Stream& stream, DType dtype, const void* values, std::int64_t count) {
  Tensor tensor = Tensor::empty(stream, dtype, {count});
  stream.copy(tensor.data(), values, tensor.bytes());
  return tensor;
}

// A range of keys of which the samples give one end only: the other is that of the sequence.
void complete_range(Stream& stream, std::int64_t num_queries, std::int64_t num_keys, bool has_begin,
                    bool has_end, Tensor& begin, Tensor& end) {
  if (has_end && !has_begin) {
    begin = constant(stream, num_queries, 0);
  }
  if (has_begin && !has_end) {
    end = constant(stream, num_queries, num_keys);
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

const Shape& shape_of_tokens(const SampleFields& fields, std::string_view prefix) {
  const auto tokens = std::ranges::find(fields, concat(prefix, "tokens"), &SampleField::name);
  check(tokens != fields.end(), "the samples have no ", prefix, "tokens");
  return tokens->shape;
}

// What all batches have, of fields whose names start with `prefix`, of samples whose sequences have
// so many keys: `pieces` as of SequenceShare.
Batch common_part(Stream& stream, const SampleFields& fields, std::string_view prefix,
                  std::int64_t num_samples, std::span<const Pieces> pieces, const BatchCut& cut) {
  const auto given = [&](const char* name) { return has(fields, concat(prefix, name)); };
  const Shape& shape = shape_of_tokens(fields, prefix);
  const std::int64_t num_sequences =
      num_samples * (shape.numel() / shape.back());  // of a sample there may be several
  Batch batch = located(stream, num_sequences, pieces);
  if (!given("positions")) {
    batch.positions = from_host(stream, places(cut.tokens, num_sequences));
  }
  complete_range(stream, num_sequences * num_tokens(cut.queries), cut.num_keys, given("key_begin"),
                 given("key_end"), batch.key_begin, batch.key_end);
  return batch;
}

}  // namespace

BatchUpload::BatchUpload(Stream& stream, const SampleFields& fields, std::int64_t num_samples,
                         const SequenceShare& share, std::int64_t length)
    : stream_(stream), fields_(fields), exchanges_heads_(share.ulysses > 1) {
  for (const SampleField& field : fields) {
    tensor_of(field);
  }
  const std::int64_t full = shape_of_tokens(fields, "").back();
  const std::int64_t left = length > 0 ? std::min(length, full) : full;
  const std::vector<Pieces> pieces = share.pieces(left);
  cut_ = {pieces[0], pieces[exchanges_heads_ ? 1 : 0], left};
  cuts_ = left < full || share.divides();
  if (cuts_) {
    fields_ = cut_fields(fields, cut_);
  }
  common_ = common_part(stream, fields, "", num_samples, pieces, cut_);
  const bool begin = has(fields, "encoder_key_begin"), end = has(fields, "encoder_key_end");
  if (begin || end || std::ranges::any_of(fields, is_encoders)) {
    check(!share.divides(), "sequences of an encoder cannot be divided");
    const auto all = BatchCut::first_tokens(shape_of_tokens(fields, kEncoder).back());
    encoder_ = common_part(stream, fields, kEncoder, num_samples, {&all.tokens, 1}, all);
    complete_range(stream, common_.num_tokens(), encoder_->length, begin, end,
                   common_.encoder_key_begin, common_.encoder_key_end);
  }
}

Batch BatchUpload::enqueue(const HostBatch& host) const {
  Batch batch = common_;
  const auto encoder = encoder_ ? std::make_shared<Batch>(*encoder_) : nullptr;
  for (const SampleField& field : host.fields()) {
    (is_encoders(field) ? *encoder : batch).*tensor_of(field) = copied(
        stream_, field.dtype, host.bytes(field).data(), host.num_samples() * field.shape.numel());
  }
  batch.samples = uploaded_samples(stream_, host, batch.num_sequences);
  if (encoder) {
    encoder->samples = encoder->num_sequences == batch.num_sequences
                           ? batch.samples
                           : uploaded_samples(stream_, host, encoder->num_sequences);
    batch.encoder = encoder;
  }
  if (exchanges_heads_) {  // attention computes tokens of other ranks too
    const auto whole = std::make_shared<Batch>(*batch.whole);
    whole->samples = batch.samples;
    for (const BatchField& field : kBatchFields) {
      if (field.per == BatchField::Per::query) {
        whole.get()->*field.tensor = std::exchange(batch.*field.tensor, {});
      }
    }
    batch.whole = whole;
  }
  return batch;
}

Batch upload(const HostBatch& host, Stream& stream, const SequenceShare& share) {
  const OpScope scope(stream, "upload", OpKind::data);
  const BatchUpload all(stream, host.fields(), host.num_samples(), share);
  std::optional<HostBatch> part;
  if (all.cuts()) {
    all.cut(host, part.emplace(DeviceKind::cpu, all.fields(), host.num_samples()));
  }
  Batch batch = all.enqueue(part ? *part : host);
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
