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
// An operand that more blocks than this need is packed once for all.
constexpr std::int64_t kOwnCopies = 2;

std::int64_t up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple;
}

// Asks for what is needed next: strips cross rows that lie far apart, which no hardware foresees.
// A row's part of `steps` steps:
void fetch_row(const bfloat16* row, std::int64_t steps) {
  for (std::int64_t step = 0; step < steps; ++step) {
    __builtin_prefetch(row + step * kDepth, 0, 2);
  }
}
// The 32 x 32 elements from `data`:
void fetch_square(const bfloat16* data, std::int64_t ld) {
  for (std::int64_t row = 0; row < kDepth; ++row) {
    __builtin_prefetch(data + row * ld);
  }
}
constexpr std::int64_t kStepsAhead = 4;  // along rows

// Loops that for_tiles can use: the threads of a pool, or the calling thread alone.
auto for_each_of(ThreadPool& pool) {
  return [&pool](std::int64_t count, const auto& body) { pool.for_each(count, body); };
}
void in_turn(std::int64_t count, const std::function<void(std::int64_t)>& body) {
  for (std::int64_t i = 0; i < count; ++i) {
    body(i);
  }
}

// Calls pack(strip, step) for all, in the order in which the operand is stored: by steps when its
// inner extent is the slow one.
template <class Loop, class Pack>
void for_tiles(const Loop& loop, std::int64_t num_strips, std::int64_t num_steps, bool by_steps,
               const Pack& pack) {
  loop(by_steps ? num_steps : num_strips, [&](std::int64_t i) {
    for (std::int64_t j = 0; j < (by_steps ? num_strips : num_steps); ++j) {
      by_steps ? pack(j, i) : pack(i, j);
    }
  });
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

AmxProduct::AmxProduct(Stream& stream, const Sizes& sizes, const Operand& a, const Operand& b,
                       Tiles tiles)
    : stream_(stream),
      s_(sizes),
      num_steps_(up(sizes.k, kDepth)),
      a_(a),
      b_(b),
      hardware_(tiles == Tiles::hardware) {
  if (!as_stored(0) && up(s_.n, s_.block_columns) > kOwnCopies) {
    share_a();
  }
  if (up(s_.m, s_.block_rows) > kOwnCopies) {
    share_b();
  }
}

// Whether the kernel can load the strip that starts at `row` as it stands.
bool AmxProduct::as_stored(std::int64_t row) const {
  return !a_.transposed && s_.k % kDepth == 0 && row + kStrip <= s_.m;
}

void AmxProduct::share_a() {
  const std::int64_t num_strips = up(s_.m, kStrip);
  shared_a_ = Tensor::empty(stream_, DType::bf16, {num_strips * num_steps_ * kStripTiles});
  auto* const to = static_cast<bfloat16*>(shared_a_.data());
  for_tiles(for_each_of(stream_.device().pool()), num_strips, num_steps_, a_.transposed,
            [&](std::int64_t strip, std::int64_t step) {
              pack_a(strip, step, to + (strip * num_steps_ + step) * kStripTiles);
            });
}

void AmxProduct::share_b() {
  const std::int64_t num_strips = up(s_.n, kStrip);
  shared_b_ = Tensor::empty(stream_, DType::bf16, {num_strips * num_steps_ * kStripTiles});
  auto* const to = static_cast<bfloat16*>(shared_b_.data());
  for_tiles(for_each_of(stream_.device().pool()), num_strips, num_steps_, !b_.transposed,
            [&](std::int64_t strip, std::int64_t step) {
              pack_b(strip, step, to + (strip * num_steps_ + step) * kStripTiles);
            });
}

void AmxProduct::pack_a(std::int64_t strip, std::int64_t step, bfloat16* to) const {
  const std::int64_t k = step * kDepth, depth = std::min(s_.k - k, kDepth);
  if (a_.transposed) {
    fetch_square(a_.data + (k + kDepth) * a_.ld + strip * kStrip, a_.ld);
  }
  for (int half = 0; half < 2; ++half, to += kTile) {
    const std::int64_t row = strip * kStrip + half * kRows;
    const std::int64_t rows = std::clamp<std::int64_t>(s_.m - row, 0, kRows);
    if (a_.transposed) {
      amx::pack_columns({a_.data + k * a_.ld + row, a_.ld, depth, rows}, hardware_, to);
    } else {
      amx::pack_rows({a_.data + row * a_.ld + k, a_.ld, rows, depth}, to);
    }
  }
}

void AmxProduct::pack_b(std::int64_t strip, std::int64_t step, bfloat16* to) const {
  const std::int64_t k = step * kDepth, depth = std::min(s_.k - k, kDepth);
  fetch_square(b_.transposed ? b_.data + strip * kStrip * b_.ld + k + kStepsAhead * kDepth
                             : b_.data + (k + kDepth) * b_.ld + strip * kStrip,
               b_.ld);
  for (int half = 0; half < 2; ++half, to += kTile) {
    const std::int64_t column = strip * kStrip + half * kRows;
    const std::int64_t columns = std::clamp<std::int64_t>(s_.n - column, 0, kRows);
    if (b_.transposed) {
      amx::pack_pairs_transposed({b_.data + column * b_.ld + k, b_.ld, columns, depth}, hardware_,
                                 to);
    } else {
      amx::pack_pairs({b_.data + k * b_.ld + column, b_.ld, depth, columns}, hardware_, to);
    }
  }
}

// Steps [first, first + steps) of a block, packed where the operand is not shared.
struct AmxProduct::Panel {
  std::int64_t row_strips, column_strips;            // how many,
  std::int64_t first_row_strip, first_column_strip;  // from where
  std::int64_t most_steps;
  Tensor own_a, own_b;
  std::int64_t first = 0, steps = 0;
  // Strip s of the block is at data + s * stride; a.data is null where rows serve as they stand.
  struct Strips {
    const bfloat16* data = nullptr;
    std::int64_t stride = 0;
  } a, b;
};

std::int64_t AmxProduct::steps_per_panel(std::int64_t columns) const {
  const std::int64_t step_bytes = up(columns, kStrip) * kStrip * kDepth * 2;
  const std::int64_t steps =
      std::max(kInnerSteps, kPanelBytes / step_bytes / kInnerSteps * kInnerSteps);
  return std::min(steps, num_steps_);
}

AmxProduct::Panel AmxProduct::panel_of(std::int64_t i, std::int64_t j) const {
  const std::int64_t rows = std::min(s_.block_rows, s_.m - i);
  const std::int64_t columns = std::min(s_.block_columns, s_.n - j);
  Panel panel{.row_strips = up(rows, kStrip),
              .column_strips = up(columns, kStrip),
              .first_row_strip = i / kStrip,
              .first_column_strip = j / kStrip,
              .most_steps = steps_per_panel(columns)};
  const std::int64_t strip_elements = panel.most_steps * kStripTiles;
  if (!shared_a_ && !as_stored(i + (panel.row_strips - 1) * kStrip)) {
    panel.own_a = Tensor::empty(stream_, DType::bf16, {panel.row_strips * strip_elements});
  }
  if (!shared_b_) {
    panel.own_b = Tensor::empty(stream_, DType::bf16, {panel.column_strips * strip_elements});
  }
  return panel;
}

void AmxProduct::enter(Panel& panel, std::int64_t first) const {
  panel.first = first;
  panel.steps = std::min(panel.most_steps, num_steps_ - first);
  const auto strips_of = [&](const Tensor& shared, const Tensor& own, std::int64_t first_strip) {
    if (own) {
      return Panel::Strips{static_cast<const bfloat16*>(own.data()),
                           panel.most_steps * kStripTiles};
    }
    const std::int64_t stride = num_steps_ * kStripTiles;
    return Panel::Strips{
        static_cast<const bfloat16*>(shared.data()) + first_strip * stride + first * kStripTiles,
        stride};
  };
  if (panel.own_a || shared_a_) {
    panel.a = strips_of(shared_a_, panel.own_a, panel.first_row_strip);
  }
  panel.b = strips_of(shared_b_, panel.own_b, panel.first_column_strip);
  if (panel.own_a) {
    for_tiles(in_turn, panel.row_strips, panel.steps, a_.transposed,
              [&](std::int64_t strip, std::int64_t step) {
                const std::int64_t from = panel.first_row_strip + strip;
                if (!as_stored(from * kStrip)) {
                  pack_a(from, first + step,
                         static_cast<bfloat16*>(panel.own_a.data()) + strip * panel.a.stride +
                             step * kStripTiles);
                }
              });
  }
  if (panel.own_b) {
    for_tiles(in_turn, panel.column_strips, panel.steps, !b_.transposed,
              [&](std::int64_t strip, std::int64_t step) {
                pack_b(panel.first_column_strip + strip, first + step,
                       static_cast<bfloat16*>(panel.own_b.data()) + strip * panel.b.stride +
                           step * kStripTiles);
              });
  }
}

// One strip of rows over the steps of a panel. Its part of a stays in the first cache while b's
// strips pass.
void AmxProduct::accumulate(const Panel& panel, std::int64_t row_strip, bool add, float* c,
                            std::int64_t ldc) const {
  const std::int64_t row = (panel.first_row_strip + row_strip) * kStrip;
  amx::RowTiles a{panel.a.data + row_strip * panel.a.stride, kDepth, kTile, kStripTiles};
  const bool in_place = panel.a.data == nullptr || as_stored(row);
  if (in_place) {
    a = {a_.data + row * a_.ld + panel.first * kDepth, a_.ld, kRows * a_.ld, kDepth};
  }
  const bool fetch = in_place && as_stored(row + kStrip);
  for (std::int64_t step = 0; step < panel.steps; step += kInnerSteps) {
    const std::int64_t steps = std::min(kInnerSteps, panel.steps - step);
    for (std::int64_t strip = 0; strip < panel.column_strips; ++strip) {
      if (fetch) {
        for (std::int64_t next = kStrip * strip / panel.column_strips;
             next < kStrip * (strip + 1) / panel.column_strips; ++next) {
          fetch_row(a.data + (kStrip + next) * a.stride, steps);
        }
      }
      const bfloat16* b = panel.b.data + strip * panel.b.stride + step * kStripTiles;
      (hardware_ ? amx::multiply_hardware : amx::multiply_emulated)(a, b, steps, add || step > 0,
                                                                    c + strip * kStrip, ldc);
    }
    a.data += kInnerSteps * a.step;
  }
}

void AmxProduct::block(std::int64_t i, std::int64_t j, const Finished& finished) const {
  const std::int64_t rows = std::min(s_.block_rows, s_.m - i);
  Panel panel = panel_of(i, j);
  const std::int64_t ldc = panel.column_strips * kStrip;
  // With one panel a strip is finished at once, so that one strip of c serves all.
  const bool one_panel = num_steps_ <= panel.most_steps;
  const Tensor scratch =
      Tensor::empty(stream_, DType::fp32, {(one_panel ? 1 : panel.row_strips) * kStrip, ldc});
  const amx::TilesInUse tiles(hardware_);
  for (std::int64_t first = 0; first < num_steps_; first += panel.most_steps) {
    enter(panel, first);
    for (std::int64_t strip = 0; strip < panel.row_strips; ++strip) {
      float* c = static_cast<float*>(scratch.data()) + (one_panel ? 0 : strip * kStrip * ldc);
      accumulate(panel, strip, first > 0, c, ldc);
      if (first + panel.steps == num_steps_) {
        finished(i + strip * kStrip, std::min(kStrip, rows - strip * kStrip), c, ldc);
      }
    }
  }
}

void AmxProduct::block_into(std::int64_t i, std::int64_t j, bool add, float* c,
                            std::int64_t ldc) const {
  Panel panel = panel_of(i, j);
  const amx::TilesInUse tiles(hardware_);
  for (std::int64_t first = 0; first < num_steps_; first += panel.most_steps) {
    enter(panel, first);
    for (std::int64_t strip = 0; strip < panel.row_strips; ++strip) {
      accumulate(panel, strip, add || first > 0, c + strip * kStrip * ldc, ldc);
    }
  }
}

}  // namespace bloomery
