// Exchanges two dimensions in front of rows that stay as they are.
#pragma once

#include "device/launch.h"
#include "tensor/tensor.h"

namespace bloomery {

// x [first, second, inner] to y [second, first, inner], where inner is what is left of the
// elements. Any dtype; x and y are apart.
struct Transpose {
  ConstView x;
  View y;
  std::int64_t first = 1, second = 1;

  std::int64_t row_bytes() const { return static_cast<std::int64_t>(x.bytes()) / (first * second); }
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const Transpose&);
void run(OnCuda, Stream&, const Transpose&);

}  // namespace bloomery
