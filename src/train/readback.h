// A few numbers that each step leaves on the device, read on the host a step later, so that the
// device never waits for the host.
#pragma once

#include <memory>
#include <vector>

#include "tensor/tensor.h"

namespace bloomery {

class Readback {
 public:
  // Of `count` fp32 or fp64 numbers a step.
  Readback(Stream& stream, DType dtype, std::int64_t count);
  ~Readback();
  Readback(const Readback&) = delete;
  Readback& operator=(const Readback&) = delete;

  // Starts the copy of the numbers as they are after the work in the stream.
  void publish(const Tensor& numbers);
  // What was published before the last `age` ones; waits until the device has come that far.
  std::vector<double> read(int age) const;

 private:
  struct Slot;
  Stream* stream_;
  DType dtype_;
  std::int64_t count_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::int64_t num_published_ = 0;
};

}  // namespace bloomery
