#include "samples/host_batch.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/round_up.h"

namespace bloomery {
namespace {

// Arrays begin where every type may begin.
constexpr std::size_t kAlignment = 8;

std::size_t array_bytes(const SampleField& field, std::int64_t num_samples) {
  const auto count = static_cast<std::size_t>(num_samples * field.shape.numel());
  return round_up(count * size_of(field.dtype), kAlignment);
}

}  // namespace

HostBatch::HostBatch(DeviceKind kind, SampleFields fields, std::int64_t num_samples)
    : num_samples_(num_samples), fields_(std::move(fields)) {
  check(num_samples >= 1, "a batch needs at least one sample, not ", num_samples);
  std::size_t bytes = static_cast<std::size_t>(num_samples) * sizeof(std::int64_t);
  for (const SampleField& field : fields_) {
    offsets_.push_back(bytes);
    bytes += array_bytes(field, num_samples);
  }
  memory_ = std::make_shared<PinnedMemory>(kind, bytes);
}

const SampleField* HostBatch::find(std::string_view name) const {
  const auto found = std::ranges::find(fields_, name, &SampleField::name);
  return found == fields_.end() ? nullptr : &*found;
}

std::span<std::byte> HostBatch::bytes(const SampleField& field) const {
  return {static_cast<std::byte*>(data(field.name, field.dtype)),
          static_cast<std::size_t>(num_samples_ * field.shape.numel()) * size_of(field.dtype)};
}

std::span<std::int64_t> HostBatch::samples() const {
  return {static_cast<std::int64_t*>(memory_->data()), static_cast<std::size_t>(num_samples_)};
}

void* HostBatch::data(std::string_view name, DType dtype) const {
  const SampleField* field = find(name);
  check(field != nullptr, "the samples have no ", name);
  check(field->dtype == dtype, name, " of the samples is ", field->dtype, ", not ", dtype);
  return static_cast<std::byte*>(memory_->data()) + offsets_[field - fields_.data()];
}

void HostBatch::copy_in(std::string_view name, DType dtype, const void* values, std::size_t count) {
  void* const to = data(name, dtype);
  const std::int64_t wanted = num_samples_ * find(name)->shape.numel();
  check(static_cast<std::int64_t>(count) == wanted, name, " of the batch has ", wanted,
        " values, not ", count);
  std::memcpy(to, values, count * size_of(dtype));
}

}  // namespace bloomery
