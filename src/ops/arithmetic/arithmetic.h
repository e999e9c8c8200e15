// y (+)= factor * x elementwise, with conversion between dtypes: cast, add and scale are all this.
#pragma once

#include "autograd/context.h"
#include "device/launch.h"

namespace bloomery {

// y = factor * scale[0] * x, or y += that when `add`. `scale` is an optional fp32 device scalar.
struct ScaleAdd {
  ConstView x;
  View y;
  float factor = 1;
  ConstView scale;
  bool add = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const ScaleAdd&);
void run(OnCuda, Stream&, const ScaleAdd&);

// Sums two values of one shape and dtype.
Value add(Context& context, const Value& a, const Value& b);
Value scale(Context& context, const Value& x, float factor);
Value cast(Context& context, const Value& x, DType dtype);

// Writes `grad` to a sink: overwrites or adds, converting if needed.
void write_grad(Stream& stream, const Tensor& grad, const Sink& sink, float factor = 1);

}  // namespace bloomery
