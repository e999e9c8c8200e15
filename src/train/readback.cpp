#include "train/readback.h"

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
  check(dtype == DType::fp32 || dtype == DType::fp64, "numbers of a step are fp32 or fp64, not ",
        dtype);
  for (int i = 0; i < kSlots; ++i) {
    slots_.push_back(
        std::make_unique<Slot>(stream.device(), static_cast<std::size_t>(count) * size_of(dtype)));
  }
}

// A copy into a slot may still be under way.
Readback::~Readback() {
  if (num_published_ > 0) {
    try {
      slots_[static_cast<std::size_t>((num_published_ - 1) % kSlots)]->arrived.synchronize();
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a failed device writes no more
    }
  }
}

void Readback::publish(const Tensor& numbers) {
  check(numbers.dtype() == dtype_ && numbers.numel() == count_, "readback of ", count_, " ", dtype_,
        " numbers, not ", numbers.dtype(), numbers.shape());
  Slot& slot = *slots_[static_cast<std::size_t>(num_published_ % kSlots)];
  stream_->copy(slot.memory.data(), numbers.data(), numbers.bytes());
  slot.arrived.record(*stream_);
  ++num_published_;
}

std::vector<double> Readback::read(int age) const {
  check(0 <= age && age < kSlots && age < num_published_, "no numbers of age ", age, " after ",
        num_published_, " steps; the last ", kSlots, " are kept");
  const Slot& slot = *slots_[static_cast<std::size_t>((num_published_ - 1 - age) % kSlots)];
  slot.arrived.synchronize();
  std::vector<double> numbers(static_cast<std::size_t>(count_));
  if (dtype_ == DType::fp64) {
    std::memcpy(numbers.data(), slot.memory.data(), numbers.size() * sizeof(double));
  } else {
    const auto* from = static_cast<const float*>(slot.memory.data());
    numbers.assign(from, from + count_);
  }
  return numbers;
}

}  // namespace bloomery
