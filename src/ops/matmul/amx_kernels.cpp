#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "ops/matmul/amx_tiles.h"

namespace bloomery::amx {

#if defined(__x86_64__)
#define BLOOMERY_TILES __attribute__((target("amx-tile,amx-bf16")))
#define BLOOMERY_INLINE_TILES __attribute__((target("amx-tile,amx-bf16"), always_inline)) inline

namespace {

// Tiles 0 to 3 are c [32, 32].
BLOOMERY_INLINE_TILES void load_sums(bool add, const float* c, std::int64_t ldc) {
  const std::int64_t stride = ldc * 4;
  if (add) {
    _tile_loadd(0, c, stride);
    _tile_loadd(1, c + kRows, stride);
    _tile_loadd(2, c + kRows * ldc, stride);
    _tile_loadd(3, c + kRows * ldc + kRows, stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
}

BLOOMERY_INLINE_TILES void store_sums(float* c, std::int64_t ldc) {
  const std::int64_t stride = ldc * 4;
  _tile_stored(0, c, stride);
  _tile_stored(1, c + kRows, stride);
  _tile_stored(2, c + kRows * ldc, stride);
  _tile_stored(3, c + kRows * ldc + kRows, stride);
}

// The lines of the next c, two rows at a time.
class Ahead {
 public:
  Ahead(const float* c, std::int64_t ldc) : at_(c), last_(c + (2 * kRows - 2) * ldc), ldc_(ldc) {}
  void prefetch() {
    for (const float* row : {at_, at_ + ldc_}) {
      __builtin_prefetch(row, 1);
      __builtin_prefetch(row + kRows, 1);
    }
    at_ = at_ < last_ ? at_ + 2 * ldc_ : at_;
  }

 private:
  const float *at_, *const last_;
  const std::int64_t ldc_;
};

// Prefetches a line that will be written.
struct PrefetchToWrite {
  [[gnu::always_inline]] void operator()(const char* address) const {
    asm volatile("prefetchw %0" : : "m"(*address));
  }
};

// What stands between tile instructions: nothing of use, or prefetches of lines of the next b.
// Where the other hardware thread of the core is busy, every tile instruction takes as long as a
// product, and neighbours hold each other up: twelve instructions in between make the loop 1.7
// times as fast there and cost nothing where the core is ours alone.
// Measured on one core of a Xeon, data in L1, nanoseconds for eight, alone and with a busy
// neighbour: loads 26 and 104, with eight instructions between 27 and 66; products 49 and 113, with
// eight vector loads between 49 and 68; eight of each 49 and 250, as below 49 and 149.
struct Idle {
  [[gnu::always_inline]] void operator()() const { asm volatile(".rept 12\n\tnop\n\t.endr"); }
};
struct Prefetch {
  const bfloat16* next;
  [[gnu::always_inline]] void operator()() {
    for (int line = 0; line < 8; ++line, next += kDepth) {
      __builtin_prefetch(next, 0, 2);
    }
  }
};

// Four products for four loads in a step. A tile is loaded for the next step as soon as it has been
// used, so that where the core is ours alone no product waits. The four gaps of a step that may
// prefetch take as many lines as it has of b. b comes from L2 and goes past L1: 2.6 instead of 1.9
// TFLOP/s on a core of a Xeon.
template <class Gap>
BLOOMERY_INLINE_TILES void multiply_steps(Gap gap, const RowTiles& a, const bfloat16* b,
                                          std::int64_t num_steps, bool add, float* c,
                                          std::int64_t ldc, const Next& next) {
  const Idle idle;
  Ahead ahead(next.c != nullptr ? next.c : c, ldc);
  const std::int64_t stride = a.stride * 2;
  const bfloat16* rows = a.data;
  load_sums(add, c, ldc);
  idle();
  _tile_stream_loadd(6, b, 64);
  idle();
  _tile_stream_loadd(7, b + kTile, 64);
  idle();
  _tile_loadd(4, rows, stride);
  for (std::int64_t step = 1; step <= num_steps; ++step) {
    const bool more = step < num_steps;
    ahead.prefetch();
    for (Lines& lines : next.lines) {
      lines.take(next.lines_a_step, PrefetchToWrite{});
    }
    gap();
    _tile_dpbf16ps(0, 4, 6);
    gap();
    _tile_loadd(5, rows + a.second, stride);
    gap();
    _tile_dpbf16ps(1, 4, 7);
    gap();
    _tile_dpbf16ps(2, 5, 6);
    rows += a.step;
    b += 2 * kTile;
    if (more) {
      idle();
      _tile_loadd(4, rows, stride);
      idle();
      _tile_stream_loadd(6, b, 64);
    }
    idle();
    _tile_dpbf16ps(3, 5, 7);
    if (more) {
      idle();
      _tile_stream_loadd(7, b + kTile, 64);
    }
  }
  store_sums(c, ldc);
}

}  // namespace

BLOOMERY_TILES void multiply_hardware(const RowTiles& a, const bfloat16* b, std::int64_t num_steps,
                                      bool add, float* c, std::int64_t ldc, const Next& next) {
  if (next.b != nullptr) {
    multiply_steps(Prefetch{next.b}, a, b, num_steps, add, c, ldc, next);
  } else {
    multiply_steps(Idle{}, a, b, num_steps, add, c, ldc, next);
  }
}
#undef BLOOMERY_TILES
#undef BLOOMERY_INLINE_TILES
#else
void multiply_hardware(const RowTiles& a, const bfloat16* b, std::int64_t num_steps, bool add,
                       float* c, std::int64_t ldc, const Next& next) {
  multiply_emulated(a, b, num_steps, add, c, ldc, next);
}
#endif

void multiply_emulated(const RowTiles& a, const bfloat16* b, std::int64_t num_steps, bool add,
                       float* c, std::int64_t ldc, const Next&) {
  for (std::int64_t row = 0; row < 2 * kRows; ++row) {
    for (std::int64_t column = 0; column < 2 * kRows; ++column) {
      float sum = add ? c[row * ldc + column] : 0.0f;
      for (std::int64_t step = 0; step < num_steps; ++step) {
        const bfloat16* x =
            a.data + step * a.step + row / kRows * a.second + row % kRows * a.stride;
        const bfloat16* y = b + (2 * step + column / kRows) * kTile + column % kRows * 2;
        for (std::int64_t i = 0; i < kDepth; ++i) {
          sum += static_cast<float>(x[i]) * static_cast<float>(y[i / 2 * kDepth + i % 2]);
        }
      }
      c[row * ldc + column] = sum;
    }
  }
}

}  // namespace bloomery::amx
