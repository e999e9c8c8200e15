#include "ops/matmul/amx.h"

#include <algorithm>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "base/prefetch.h"
#include "ops/matmul/amx_guard.h"

namespace bloomery {
namespace {

using amx::kDepth;
using amx::kTile;

// Steps between visits of c, at most: 32 rows of a stay in L1 meanwhile.
constexpr std::int64_t kInnerSteps = 24;
// Of b, which stay in L2 while all strips of a block pass: the second number where parts of c,
// which are visited again, have to stay there too.
constexpr std::int64_t kWholeBytes = 1200 * 1024, kPanelBytes = 768 * 1024;
constexpr std::int64_t kLeastSteps = 6;

std::int64_t up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple;
}

// How many of `steps` steps come at a time, in even parts of at most `most`.
std::int64_t part_of(std::int64_t steps, std::int64_t most) { return up(steps, up(steps, most)); }

// Packed strips: number s is at data + s * stride.
struct Strips {
  bfloat16* data = nullptr;
  std::int64_t stride = 0;
};

// A loop of packing on the calling thread alone.
void in_turn(std::int64_t count, const std::function<void(std::int64_t)>& body) {
  for (std::int64_t i = 0; i < count; ++i) {
    body(i);
  }
}

}  // namespace

bool amx_usable() {
#if defined(__x86_64__)
  static const bool usable = [] {
    constexpr unsigned kBf16 = 1u << 22, kTiles = 1u << 24;
    constexpr int kRequestPermission = 0x1023, kTileData = 18;
    unsigned a = 0, b = 0, c = 0, d = 0;
    return cpu_level() >= 3 && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kBf16) != 0 &&
           (d & kTiles) != 0 && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
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
      a_(AmxOperand::Side::a, a, sizes.m, sizes.k, tiles == Tiles::hardware),
      b_(AmxOperand::Side::b, b, sizes.n, sizes.k, tiles == Tiles::hardware),
      hardware_(tiles == Tiles::hardware) {
  const auto share = [&](const AmxOperand& operand, std::int64_t extent) {
    const std::int64_t strips = up(extent, kStrip), stride = num_steps_ * kStepSize;
    Tensor packed = Tensor::empty(stream_, DType::bf16, {strips * stride});
    const auto by_all = [&](std::int64_t count, const auto& body) {
      stream_.device().pool().for_each(count, body);
    };
    operand.pack({0, strips, 0, num_steps_}, by_all, static_cast<bfloat16*>(packed.data()), stride);
    return packed;
  };
  // Rows are cheap to pack, and each block does.
  if (a_.transposed() && up(s_.n, s_.block_columns) > kOwnCopies) {
    shared_a_ = share(a_, s_.m);
  }
  if (up(s_.m, s_.block_rows) > kOwnCopies) {
    shared_b_ = share(b_, s_.n);
  }
}

// Steps [first, first + steps) of a block, packed where the operand is not shared: rows of a that
// is not transposed strip by strip, just before their use, a few steps at a time.
struct AmxProduct::Panel {
  std::int64_t row_strips, column_strips;
  std::int64_t first_row_strip, first_column_strip;
  std::int64_t most_steps;
  Tensor own_a, own_b;
  std::int64_t first = 0, steps = 0;
  Strips a, b;
};

std::int64_t AmxProduct::panel_depth(std::int64_t columns, std::int64_t k) {
  const std::int64_t step_bytes = up(columns, kStrip) * kStepSize * 2, all = up(k, kDepth);
  if (all * step_bytes <= kWholeBytes) {
    return all * kDepth;
  }
  return part_of(all, std::max(kLeastSteps, kPanelBytes / step_bytes)) * kDepth;
}

AmxProduct::Panel AmxProduct::panel_of(std::int64_t i, std::int64_t j) const {
  const std::int64_t rows = std::min(s_.block_rows, s_.m - i);
  const std::int64_t columns = std::min(s_.block_columns, s_.n - j);
  Panel panel{.row_strips = up(rows, kStrip),
              .column_strips = up(columns, kStrip),
              .first_row_strip = i / kStrip,
              .first_column_strip = j / kStrip,
              .most_steps = panel_depth(columns, s_.k) / kDepth};
  const auto room_for = [&](std::int64_t strips, std::int64_t steps) {
    return Tensor::empty(stream_, DType::bf16, {strips * steps * kStepSize});
  };
  if (!rows_come_packed()) {
    panel.own_a = room_for(1, kInnerSteps);
  } else if (!shared_a_) {
    panel.own_a = room_for(panel.row_strips, panel.most_steps);
  }
  if (!shared_b_) {
    panel.own_b = room_for(panel.column_strips, panel.most_steps);
  }
  return panel;
}

void AmxProduct::enter(Panel& panel, std::int64_t first) const {
  panel.first = first;
  panel.steps = std::min(panel.most_steps, num_steps_ - first);
  const auto strips_of = [&](const Tensor& shared, const Tensor& own, std::int64_t first_strip) {
    if (own) {
      return Strips{static_cast<bfloat16*>(own.data()), panel.most_steps * kStepSize};
    }
    const std::int64_t stride = num_steps_ * kStepSize;
    return Strips{static_cast<bfloat16*>(shared.data()) + first_strip * stride + first * kStepSize,
                  stride};
  };
  panel.a = strips_of(shared_a_, panel.own_a, panel.first_row_strip);
  panel.b = strips_of(shared_b_, panel.own_b, panel.first_column_strip);
  if (panel.own_a && a_.transposed()) {
    a_.pack({panel.first_row_strip, panel.row_strips, first, panel.steps}, in_turn, panel.a.data,
            panel.a.stride);
  }
  if (panel.own_b) {
    b_.pack({panel.first_column_strip, panel.column_strips, first, panel.steps}, in_turn,
            panel.b.data, panel.b.stride);
  }
}

// The tiles of one strip of rows for `steps` steps from `step` of the panel.
const bfloat16* AmxProduct::rows_of(const Panel& panel, std::int64_t row_strip, std::int64_t step,
                                    std::int64_t steps) const {
  if (rows_come_packed()) {
    return panel.a.data + row_strip * panel.a.stride + step * kStepSize;
  }
  for (std::int64_t i = 0; i < steps; ++i) {
    a_.pack(panel.first_row_strip + row_strip, panel.first + step + i,
            panel.a.data + i * kStepSize);
  }
  return panel.a.data;
}

// Where one strip of rows of the block lies in each of the touched matrices.
AmxProduct::Lines AmxProduct::lines_of(const AllTouched& touched, const Panel& panel,
                                       std::int64_t row_strip) const {
  const std::int64_t row = (panel.first_row_strip + row_strip) * kStrip;
  const std::int64_t column = panel.first_column_strip * kStrip;
  const std::int64_t columns = std::min(panel.column_strips * kStrip, s_.n - column);
  Lines lines;
  for (std::size_t i = 0; i < touched.size(); ++i) {
    const auto& [data, bytes] = touched[i];
    if (data != nullptr) {
      lines[i] = {.row = static_cast<const char*>(data) + (row * s_.n + column) * bytes,
                  .rows = std::min(kStrip, s_.m - row),
                  .bytes = columns * bytes,
                  .stride = s_.n * bytes};
    }
  }
  return lines;
}

// One strip of rows over the steps of a panel, kInnerSteps at a time: as long as b's strips pass,
// these steps of a stay in L1, 48 KB at most. The lines are those of what will be done with the
// sums.
void AmxProduct::accumulate(const Panel& panel, std::int64_t row_strip, bool add, float* c,
                            std::int64_t ldc, Lines lines) const {
  constexpr std::int64_t kLine = 64;
  const std::int64_t inner = part_of(panel.steps, kInnerSteps);
  const std::int64_t num_lines = kStrip * up(lines.front().bytes, kLine);
  const std::int64_t lines_a_step = up(num_lines, panel.column_strips * panel.steps);
  const auto multiply = hardware_ ? amx::multiply_hardware : amx::multiply_emulated;
  for (std::int64_t step = 0; step < panel.steps; step += inner) {
    const std::int64_t steps = std::min(inner, panel.steps - step);
    const bfloat16* const a = rows_of(panel, row_strip, step, steps);
    for (std::int64_t strip = 0; strip < panel.column_strips; ++strip) {
      prefetch_next_rows(panel, row_strip, strip, step, steps);
      const bfloat16* b = panel.b.data + strip * panel.b.stride + step * kStepSize;
      float* const to = c + strip * kStrip;
      multiply({a, kDepth, kTile, 2 * kTile}, b, steps, add || step > 0, to, ldc,
               {.c = strip + 1 < panel.column_strips ? to + kStrip : c,
                .b = row_strip == 0 ? next_columns(panel, strip, step, inner) : nullptr,
                .lines = lines,
                .lines_a_step = lines_a_step});
    }
  }
}

// The tiles of b that follow those of a strip and step, where they were packed by another thread
// and this one has not seen them yet.
const bfloat16* AmxProduct::next_columns(const Panel& panel, std::int64_t strip, std::int64_t step,
                                         std::int64_t inner) const {
  if (!shared_b_) {
    return nullptr;
  }
  if (strip + 1 < panel.column_strips) {
    return panel.b.data + (strip + 1) * panel.b.stride + step * kStepSize;
  }
  return step + inner < panel.steps ? panel.b.data + (step + inner) * kStepSize : nullptr;
}

// Beside column strip `strip`: its share of what the next row strip will take from a, packed tiles
// or rows that rows_of will pack.
void AmxProduct::prefetch_next_rows(const Panel& panel, std::int64_t row_strip, std::int64_t strip,
                                    std::int64_t step, std::int64_t steps) const {
  const auto share_from = [&](std::int64_t count) { return count * strip / panel.column_strips; };
  const auto share_to = [&](std::int64_t count) {
    return count * (strip + 1) / panel.column_strips;
  };
  if (rows_come_packed()) {
    if (row_strip + 1 == panel.row_strips) {
      return;
    }
    const bfloat16* const next = rows_of(panel, row_strip + 1, step, steps);
    const std::int64_t lines = steps * kStepSize / kDepth;
    for (std::int64_t line = share_from(lines); line < share_to(lines); ++line) {
      prefetch_to_l2(next + line * kDepth);
    }
    return;
  }
  const std::int64_t next_row = (panel.first_row_strip + row_strip + 1) * kStrip;
  if (next_row + kStrip > s_.m) {
    return;
  }
  const std::int64_t end = next_row + share_to(kStrip);
  const std::int64_t first = (panel.first + step) * kDepth;
  for (std::int64_t row = next_row + share_from(kStrip); row < end; ++row) {
    a_.prefetch(row, first, first + steps * kDepth);
  }
}

void AmxProduct::block(std::int64_t i, std::int64_t j, const Finished& finished,
                       const AllTouched& touched) const {
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
      const bool last = first + panel.steps == num_steps_;
      accumulate(panel, strip, first > 0, c, ldc, last ? lines_of(touched, panel, strip) : Lines{});
      if (last) {
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
