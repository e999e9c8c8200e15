// bf16 products on the tile multipliers of x86 (AMX). oneDNN's kernels reach a seventh of what the
// tiles can do on blocks of a GPT, because each call packs its operands anew; here both are packed
// at most once per product.
#pragma once

#include <cstdint>
#include <functional>

#include "device/stream.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace bloomery {

// Whether the processor has the tiles and the system lets this process use them.
bool amx_usable();

// c [m, n] = op(a) op(b) in fp32. The operands live until the object does.
class AmxProduct {
 public:
  struct Operand {
    const bfloat16* data;
    std::int64_t ld;
    bool transposed;  // stored [k, m] for a, [n, k] for b
  };
  // Emulated: the same steps without tile instructions, for tests on other processors.
  enum class Tiles { hardware, emulated };

  // Packs b, and a where its rows cannot be loaded as they are.
  AmxProduct(Stream& stream, std::int64_t m, std::int64_t n, std::int64_t k, const Operand& a,
             const Operand& b, Tiles tiles = Tiles::hardware);

  static constexpr std::int64_t kStrip = 32;  // rows and columns of one step of the kernel

  // Rows [i, i + rows) and columns [j, j + columns), both starting at multiples of kStrip, on the
  // calling thread. finished(first_row, num_rows, c, ldc) receives the results strip by strip.
  using Finished = std::function<void(std::int64_t, std::int64_t, float*, std::int64_t)>;
  void block(std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t columns,
             const Finished& finished) const;
  // The same straight into c [m, n], or added to it; rows and columns are multiples of kStrip.
  void block_into(std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t columns, bool add,
                  float* c, std::int64_t ldc) const;

 private:
  void pack_all(std::int64_t num_strips, bool by_steps,
                const std::function<void(std::int64_t, std::int64_t)>& pack) const;
  bfloat16* at(const Tensor& packed, std::int64_t strip, std::int64_t step) const;
  void pack_a();
  void pack_b();
  void accumulate(std::int64_t row, std::int64_t j, std::int64_t columns, std::int64_t first_step,
                  std::int64_t num_steps, bool add, float* c, std::int64_t ldc) const;
  std::int64_t steps_per_panel(std::int64_t columns) const;

  Stream& stream_;
  const std::int64_t m_, n_, k_, num_steps_;
  const Operand a_, b_;
  const bool hardware_;
  std::int64_t first_packed_row_ = 0;
  Tensor packed_a_, packed_b_;
};

}  // namespace bloomery
