// Products of bf16 matrices on the tile registers of x86 (AMX). oneDNN's kernels reach a seventh of
// what the tiles can do on blocks of a GPT, because each call packs its operands anew; here an
// operand that several blocks share is packed once for all, and any other by its block, into L2.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "device/stream.h"
#include "ops/matmul/amx_operand.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace bloomery {

// Whether the processor has the tiles (and the vector instructions on bf16 that come with them) and
// the system lets this process use them.
bool amx_usable();

// c [m, n] = op(a) op(b) in fp32, block by block. m, n and k are at least 1; the operands must live
// as long as the object. Sums of an element are taken in one order, whatever the blocks and the
// number of threads.
class AmxProduct {
 public:
  using Operand = AmxOperand::Stored;
  // Emulated: the same steps without tile instructions, for tests on other processors.
  enum class Tiles { hardware, emulated };

  static constexpr std::int64_t kStrip = AmxOperand::kStrip;  // rows and columns that tiles cover
  // An operand that more blocks than this need is packed once for all.
  static constexpr std::int64_t kOwnCopies = 2;

  struct Sizes {
    std::int64_t m, n, k;
    std::int64_t block_rows, block_columns;  // multiples of kStrip, or at least m and n
  };
  // Inner positions of k that a block of so many columns computes in one go, at most; between goes
  // it visits c.
  static std::int64_t panel_depth(std::int64_t columns, std::int64_t k);

  AmxProduct(Stream& stream, const Sizes& sizes, const Operand& a, const Operand& b,
             Tiles tiles = Tiles::hardware);

  // The block that starts at row i and column j, on the calling thread. finished(first_row,
  // num_rows, c, ldc) receives the results strip by strip.
  using Finished = std::function<void(std::int64_t, std::int64_t, float*, std::int64_t)>;
  // Matrices [m, n] that `finished` will write or read at the same places; null data: none.
  struct Touched {
    const void* data;
    std::int64_t element_bytes;
  };
  using AllTouched = std::array<Touched, 2>;
  void block(std::int64_t i, std::int64_t j, const Finished& finished,
             const AllTouched& touched = {}) const;
  // Whether m and n are multiples of kStrip. Not a matter of single blocks: sums that start from c
  // round in another way than sums that are added to it, so one product must not mix the two.
  bool goes_straight_into_c() const { return s_.m % kStrip == 0 && s_.n % kStrip == 0; }
  // Then: the same straight into c, which is element (i, j) of [m, n], or added to it.
  void block_into(std::int64_t i, std::int64_t j, bool add, float* c, std::int64_t ldc) const;

 private:
  static constexpr std::int64_t kStepSize = AmxOperand::kStepSize;
  struct Panel;  // a part of the inner extent in one block

  bool rows_come_packed() const { return shared_a_ || a_.transposed(); }
  Panel panel_of(std::int64_t i, std::int64_t j) const;
  void enter(Panel& panel, std::int64_t first) const;
  const bfloat16* rows_of(const Panel& panel, std::int64_t row_strip, std::int64_t step,
                          std::int64_t steps) const;
  void prefetch_next_rows(const Panel& panel, std::int64_t row_strip, std::int64_t strip,
                          std::int64_t step, std::int64_t steps) const;
  const bfloat16* next_columns(const Panel& panel, std::int64_t strip, std::int64_t step,
                               std::int64_t inner) const;
  using Lines = std::array<amx::Lines, std::tuple_size_v<AllTouched>>;
  Lines lines_of(const AllTouched& touched, const Panel& panel, std::int64_t row_strip) const;
  void accumulate(const Panel& panel, std::int64_t row_strip, bool add, float* c, std::int64_t ldc,
                  Lines lines = {}) const;

  Stream& stream_;
  const Sizes s_;
  const std::int64_t num_steps_;
  const AmxOperand a_, b_;
  const bool hardware_;
  Tensor shared_a_, shared_b_;  // null: packed by each block
};

}  // namespace bloomery
