#include "ops/matmul/amx.h"

#include <algorithm>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "ops/matmul/amx_guard.h"

namespace bloomery {
namespace {

using amx::kDepth;
using amx::kRows;
using amx::kTile;

constexpr std::int64_t kStripTiles = 2 * kTile;  // elements of a strip per step
// Steps between visits of c: 32 rows of a stay in the first cache meanwhile.
constexpr std::int64_t kInnerSteps = 16;
// Steps of b that stay in the second cache while all strips of a block pass, by its columns.
constexpr std::int64_t kPanelBytes = 768 * 1024;
std::int64_t up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple;
}

}  // namespace

bool amx_usable() {
#if defined(__x86_64__)
  static const bool usable = [] {
    constexpr unsigned kBf16 = 1u << 22, kTiles = 1u << 24;
    constexpr int kRequestPermission = 0x1023, kTileData = 18;
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx512bw") > 0 && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
           (d & kBf16) != 0 && (d & kTiles) != 0 &&
           syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return usable;
#else
  return false;
#endif
}

AmxProduct::AmxProduct(Stream& stream, std::int64_t m, std::int64_t n, std::int64_t k,
                       const Operand& a, const Operand& b, Tiles tiles)
    : stream_(stream),
      m_(m),
      n_(n),
      k_(k),
      num_steps_(up(k, kDepth)),
      a_(a),
      b_(b),
      hardware_(tiles == Tiles::hardware) {
  pack_a();
  pack_b();
}

// Calls pack(strip, step) for all, in the order in which the operand is stored: by steps when its
// inner extent is the slow one.
void AmxProduct::pack_all(std::int64_t num_strips, bool by_steps,
                          const std::function<void(std::int64_t, std::int64_t)>& pack) const {
  const std::int64_t outer = by_steps ? num_steps_ : num_strips;
  const std::int64_t inner = by_steps ? num_strips : num_steps_;
  stream_.device().pool().for_each(outer, [&](std::int64_t i) {
    for (std::int64_t j = 0; j < inner; ++j) {
      by_steps ? pack(j, i) : pack(i, j);
    }
  });
}

// Rows that the kernel can load as they stand are not packed: whole strips of a stored [m, k] whose
// k is a multiple of the depth.
void AmxProduct::pack_a() {
  first_packed_row_ = !a_.transposed && k_ % kDepth == 0 ? m_ / kStrip * kStrip : 0;
  const std::int64_t num_strips = up(m_ - first_packed_row_, kStrip);
  packed_a_ = Tensor::empty(stream_, DType::bf16, {num_strips * num_steps_ * kStripTiles});
  pack_all(num_strips, a_.transposed, [&](std::int64_t strip, std::int64_t step) {
    bfloat16* to = at(packed_a_, strip, step);
    const std::int64_t k = step * kDepth, depth = std::min(k_ - k, kDepth);
    for (int half = 0; half < 2; ++half, to += kTile) {
      const std::int64_t row = first_packed_row_ + strip * kStrip + half * kRows;
      const std::int64_t rows = std::clamp<std::int64_t>(m_ - row, 0, kRows);
      if (a_.transposed) {
        amx::pack_columns({a_.data + k * a_.ld + row, a_.ld, depth, rows}, hardware_, to);
      } else {
        amx::pack_rows({a_.data + row * a_.ld + k, a_.ld, rows, depth}, to);
      }
    }
  });
}

void AmxProduct::pack_b() {
  const std::int64_t num_strips = up(n_, kStrip);
  packed_b_ = Tensor::empty(stream_, DType::bf16, {num_strips * num_steps_ * kStripTiles});
  pack_all(num_strips, !b_.transposed, [&](std::int64_t strip, std::int64_t step) {
    bfloat16* to = at(packed_b_, strip, step);
    const std::int64_t k = step * kDepth, depth = std::min(k_ - k, kDepth);
    for (int half = 0; half < 2; ++half, to += kTile) {
      const std::int64_t column = strip * kStrip + half * kRows;
      const std::int64_t columns = std::clamp<std::int64_t>(n_ - column, 0, kRows);
      if (b_.transposed) {
        amx::pack_pairs_transposed({b_.data + column * b_.ld + k, b_.ld, columns, depth}, hardware_,
                                   to);
      } else {
        amx::pack_pairs({b_.data + k * b_.ld + column, b_.ld, depth, columns}, hardware_, to);
      }
    }
  });
}

bfloat16* AmxProduct::at(const Tensor& packed, std::int64_t strip, std::int64_t step) const {
  return static_cast<bfloat16*>(packed.data()) + (strip * num_steps_ + step) * kStripTiles;
}

void AmxProduct::accumulate(std::int64_t row, std::int64_t j, std::int64_t columns,
                            std::int64_t first_step, std::int64_t num_steps, bool add, float* c,
                            std::int64_t ldc) const {
  for (std::int64_t step = first_step; step < first_step + num_steps; step += kInnerSteps) {
    const std::int64_t steps = std::min(kInnerSteps, first_step + num_steps - step);
    amx::RowTiles a{a_.data + row * a_.ld + step * kDepth, a_.ld, kRows * a_.ld, kDepth};
    if (row >= first_packed_row_) {
      a = {at(packed_a_, (row - first_packed_row_) / kStrip, step), kDepth, kTile, kStripTiles};
    }
    for (std::int64_t column = 0; column < columns; column += kStrip) {
      const bfloat16* b = at(packed_b_, (j + column) / kStrip, step);
      (hardware_ ? amx::multiply_hardware : amx::multiply_emulated)(
          a, b, steps, add || step > first_step, c + column, ldc);
    }
  }
}

std::int64_t AmxProduct::steps_per_panel(std::int64_t columns) const {
  const std::int64_t step_bytes = up(columns, kStrip) * kStrip * kDepth * 2;
  return std::max(kInnerSteps, kPanelBytes / step_bytes / kInnerSteps * kInnerSteps);
}

void AmxProduct::block(std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t columns,
                       const Finished& finished) const {
  const std::int64_t ldc = up(columns, kStrip) * kStrip, panel = steps_per_panel(columns);
  // With one panel a strip is finished at once, so that one strip of c serves all.
  const bool one_panel = num_steps_ <= panel;
  const Tensor scratch =
      Tensor::empty(stream_, DType::fp32, {one_panel ? kStrip : up(rows, kStrip) * kStrip, ldc});
  const amx::TilesInUse tiles(hardware_);
  for (std::int64_t first = 0; first < num_steps_; first += panel) {
    const std::int64_t steps = std::min(panel, num_steps_ - first);
    for (std::int64_t row = 0; row < rows; row += kStrip) {
      float* c = static_cast<float*>(scratch.data()) + (one_panel ? 0 : row * ldc);
      accumulate(i + row, j, columns, first, steps, first > 0, c, ldc);
      if (first + steps == num_steps_) {
        finished(i + row, std::min(kStrip, rows - row), c, ldc);
      }
    }
  }
}

void AmxProduct::block_into(std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t columns,
                            bool add, float* c, std::int64_t ldc) const {
  const std::int64_t panel = steps_per_panel(columns);
  const amx::TilesInUse tiles(hardware_);
  for (std::int64_t first = 0; first < num_steps_; first += panel) {
    const std::int64_t steps = std::min(panel, num_steps_ - first);
    for (std::int64_t row = 0; row < rows; row += kStrip) {
      accumulate(i + row, j, columns, first, steps, add || first > 0, c + row * ldc, ldc);
    }
  }
}

}  // namespace bloomery
