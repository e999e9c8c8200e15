// What each step leaves on the device, read on the host a step later, so that the device never
// waits for the host: a ring of pinned copies.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace bloomery {

class Readback {
 public:
  // Of a tensor of `count` elements a step.
  Readback(Stream& stream, DType dtype, std::int64_t count);
  ~Readback();
  Readback(const Readback&) = delete;
  Readback& operator=(const Readback&) = delete;

  // Starts the copy of the tensor as it is after the work in the stream. Not in a graph: reading
  // waits for an event of the copy.
  void publish(const Tensor& tensor);
  // What was published before the last `age` ones, at most 3; waits until the device has come that
  // far. The bytes stay until three more were published.
  std::span<const std::byte> bytes(int age) const;
  // The same as numbers, of fp32 or fp64.
  std::vector<double> read(int age) const;

 private:
  struct Slot;
  Slot& slot(std::int64_t number) const;

  Stream* stream_;
  DType dtype_;
  std::int64_t count_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::int64_t num_published_ = 0;
};

}  // namespace bloomery
