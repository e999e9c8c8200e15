#include "tensor/readback.h"

#include <cstring>

namespace bloomery {
namespace {

constexpr int kSlots = 4;

}  // namespace

struct Readback::Slot {
  Slot(Device& device, std::size_t bytes) : memory(device.kind(), bytes), arrived(device) {}
  PinnedMemory memory;
  Event arrived;
};

Readback::Readback(Stream& stream, DType dtype, std::int64_t count)
    : stream_(&stream), dtype_(dtype), count_(count) {
  for (int i = 0; i < kSlots; ++i) {
    slots_.push_back(
        std::make_unique<Slot>(stream.device(), static_cast<std::size_t>(count) * size_of(dtype)));
  }
}

// A copy may still be under way. A device that has failed writes no more, and the error that ends
// this object must not be replaced by another.
Readback::~Readback() {
  if (num_published_ > 0) {
    try {
      slot(num_published_ - 1).arrived.synchronize();
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    }
  }
}

Readback::Slot& Readback::slot(std::int64_t number) const {
  return *slots_[static_cast<std::size_t>(number % kSlots)];
}

void Readback::publish(const Tensor& tensor) {
  check(tensor.dtype() == dtype_ && tensor.numel() == count_, "readback of ", count_, " ", dtype_,
        " numbers, not ", tensor.dtype(), tensor.shape());
  Slot& free = slot(num_published_);
  stream_->copy(free.memory.data(), tensor.data(), tensor.bytes());
  free.arrived.record(*stream_);
  ++num_published_;
}

std::span<const std::byte> Readback::bytes(int age) const {
  check(0 <= age && age < kSlots && age < num_published_, "no numbers of age ", age, " after ",
        num_published_, " steps; the last ", kSlots, " are kept");
  const Slot& found = slot(num_published_ - 1 - age);
  found.arrived.synchronize();
  return {static_cast<const std::byte*>(found.memory.data()),
          static_cast<std::size_t>(count_) * size_of(dtype_)};
}

std::vector<double> Readback::read(int age) const {
  check(dtype_ == DType::fp32 || dtype_ == DType::fp64, "numbers of a step are fp32 or fp64, not ",
        dtype_);
  const std::span<const std::byte> from = bytes(age);
  std::vector<double> numbers(static_cast<std::size_t>(count_));
  if (dtype_ == DType::fp64) {
    std::memcpy(numbers.data(), from.data(), from.size());
  } else {
    const auto* floats = reinterpret_cast<const float*>(from.data());
    numbers.assign(floats, floats + count_);
  }
  return numbers;
}

}  // namespace bloomery
