// Moves some columns of a matrix into some of another.
#pragma once

#include "device/launch.h"
#include "tensor/tensor.h"

namespace bloomery {

// y[r, y_first + c] = x[r, x_first + c], or += that when `add`, for all rows and c < columns, with
// conversion between dtypes. Rows of x and y have x_width and y_width elements; they are apart.
struct CopyColumns {
  ConstView x;
  View y;
  std::int64_t rows = 0, columns = 0;
  std::int64_t x_width = 0, x_first = 0;
  std::int64_t y_width = 0, y_first = 0;
  bool add = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const CopyColumns&);
void run(OnCuda, Stream&, const CopyColumns&);

}  // namespace bloomery
