// A product on the calling thread with kernels of our own: what serves where no library is
// installed.
#pragma once

#include "device/launch.h"
#include "ops/matmul/product_shape.h"

namespace bloomery {

struct OwnProduct {
  ProductShape shape;  // fp32 or fp64, inputs and output alike
  const void *a, *b;
  void* c;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream& stream, const OwnProduct& product);

}  // namespace bloomery
