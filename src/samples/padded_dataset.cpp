#include "samples/padded_dataset.h"

#include <algorithm>

#include "base/error.h"

namespace bloomery {
namespace {

const SampleField& find(const SampleFields& fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &SampleField::name);
  check(found != fields.end(), "padded samples without ", name);
  return *found;
}

void fill(const Sample& out, std::string_view name, std::int32_t value) {
  std::ranges::fill(out.array<std::int32_t>(name), value);
}

}  // namespace

SampleFields padded_fields(const SampleFields& fields) {
  SampleFields result;
  for (const SampleField& field : fields) {
    if (field.name == "lengths") {
      result.push_back({"key_end", DType::int32, find(fields, "tokens").shape});
    } else if (field.name == "encoder_tokens") {
      result.push_back({"encoder.tokens", field.dtype, field.shape});
    } else if (field.name == "encoder_lengths") {
      result.push_back({"encoder.key_end", DType::int32, find(fields, "encoder_tokens").shape});
      result.push_back({"encoder_key_end", DType::int32, find(fields, "tokens").shape});
    } else {
      result.push_back(field);
    }
  }
  return result;
}

PaddedDataset::PaddedDataset(std::unique_ptr<Dataset> samples)
    : samples_(std::move(samples)), fields_(padded_fields(samples_->fields())) {}

void PaddedDataset::read(std::int64_t k, const Sample& out) const {
  HostBatch sample(DeviceKind::cpu, samples_->fields(), 1);
  samples_->read(k, Sample(sample, 0));
  for (const SampleField& field : samples_->fields()) {
    if (field.name == "lengths") {
      fill(out, "key_end", sample.array<std::int32_t>("lengths")[0]);
    } else if (field.name == "encoder_lengths") {
      const std::int32_t length = sample.array<std::int32_t>("encoder_lengths")[0];
      fill(out, "encoder.key_end", length);
      fill(out, "encoder_key_end", length);
    } else if (field.dtype == DType::fp32) {
      std::ranges::copy(sample.array<float>(field.name), out.array<float>(field.name).begin());
    } else {
      const auto name = field.name == "encoder_tokens" ? "encoder.tokens" : field.name;
      std::ranges::copy(sample.array<std::int32_t>(field.name),
                        out.array<std::int32_t>(name).begin());
    }
  }
}

}  // namespace bloomery
