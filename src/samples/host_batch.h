// Samples on the host: named arrays, those of a micro-batch stacked one after another.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "device/memory.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace bloomery {

// An array of one sample. The names that models read are those of Batch's members
// (autograd/batch_fields.h), "encoder.NAME" of its encoder's; a dataset may have others.
struct SampleField {
  std::string_view name;  // of a literal
  DType dtype = DType::int32;
  Shape shape;  // without dimensions: one number

  bool operator==(const SampleField&) const = default;
};
using SampleFields = std::vector<SampleField>;

// Arrays in one piece of memory from which a GPU copies at full speed. A cheap handle: copies share
// the arrays.
class HostBatch {
 public:
  HostBatch(DeviceKind kind, SampleFields fields, std::int64_t num_samples);

  std::int64_t num_samples() const { return num_samples_; }
  const SampleFields& fields() const { return fields_; }
  // Null when there is no such field.
  const SampleField* find(std::string_view name) const;

  // Of all samples: [num_samples, shape...]. Another type than the field's, or a field that is not
  // there, is an Error.
  template <class T>
  std::span<T> array(std::string_view name) const {
    return {static_cast<T*>(data(name, dtype_of<T>)),
            static_cast<std::size_t>(num_samples_ * find(name)->shape.numel())};
  }
  template <class T>
  void set(std::string_view name, const std::vector<T>& values) {
    copy_in(name, dtype_of<T>, values.data(), values.size());
  }
  std::span<std::byte> bytes(const SampleField& field) const;

  // Place of each sample in the order of consumption, the coordinate for dropout.
  std::span<std::int64_t> samples() const;

 private:
  void* data(std::string_view name, DType dtype) const;
  void copy_in(std::string_view name, DType dtype, const void* values, std::size_t count);

  std::int64_t num_samples_;
  SampleFields fields_;
  std::vector<std::size_t> offsets_;  // of each field's array
  std::shared_ptr<PinnedMemory> memory_;
};

// Where one sample of a batch is written.
class Sample {
 public:
  Sample(HostBatch& batch, std::int64_t index) : batch_(batch), index_(index) {}

  template <class T>
  std::span<T> array(std::string_view name) const {
    const std::span<T> all = batch_.array<T>(name);
    const std::size_t size = all.size() / static_cast<std::size_t>(batch_.num_samples());
    return all.subspan(static_cast<std::size_t>(index_) * size, size);
  }

 private:
  HostBatch& batch_;
  std::int64_t index_;
};

}  // namespace bloomery
