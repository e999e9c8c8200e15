// A matrix product with kernels of our own. b is packed once, so that blocks of rows share it,
// where each call of a library packs its operands anew.
#pragma once

#include <functional>

#include "device/launch.h"
#include "ops/matmul/product_shape.h"

namespace bloomery {

struct OwnProduct {
  ProductShape shape;  // inputs of any floating dtype; the output is their accumulation dtype
  const void *a, *b;
  void* c;  // null: results go only to `finished`
  // What one thread computes at a time. Numbers do not depend on it.
  std::int64_t block_rows, block_columns;

  // Rows [i, i + rows) and columns [j, j + columns) are complete: at c, rows ldc apart. Comes from
  // the thread that computed them, while they are in its L2. May be empty when c is not null.
  struct Part {
    std::int64_t i, j, rows, columns;
    void* c;
    std::int64_t ldc;
  };
  std::function<void(const Part&)> finished;
  // A matrix like c, with its dtype and ldc, that `finished` uses at the same places, or null: a
  // hint for prefetching.
  const void* beside = nullptr;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream& stream, const OwnProduct& product);

}  // namespace bloomery
