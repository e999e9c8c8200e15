#include <array>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "ops/matmul/amx_planes.h"
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
  void fetch() {
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

// Asks for a line that will be written.
struct FetchToWrite {
  [[gnu::always_inline]] void operator()(const char* address) const {
    asm volatile("prefetchw %0" : : "m"(*address));
  }
};

// What stands between tile instructions: nothing of use, or requests for lines of the next b. Where
// the other hardware thread of the core is busy, every tile instruction takes as long as a product,
// and neighbours hold each other up: twelve instructions in between make the loop 1.7 times as fast
// there and cost nothing where the core is ours alone.
struct Idle {
  [[gnu::always_inline]] void operator()() const { asm volatile(".rept 12\n\tnop\n\t.endr"); }
};
template <int kLines>
struct Fetch {
  const bfloat16* next;
  [[gnu::always_inline]] void operator()() {
    for (int line = 0; line < kLines; ++line, next += kDepth) {
      __builtin_prefetch(next, 0, 2);
    }
    if constexpr (kLines < 6) {
      asm volatile(".rept 6\n\tnop\n\t.endr");
    }
  }
};

// Four products of a's tiles, 4 and 5, with b's, 6 and 7.
template <class Gap>
BLOOMERY_INLINE_TILES void multiply_tiles(Gap& gap) {
  gap();
  _tile_dpbf16ps(0, 4, 6);
  gap();
  _tile_dpbf16ps(1, 4, 7);
  gap();
  _tile_dpbf16ps(2, 5, 6);
  gap();
  _tile_dpbf16ps(3, 5, 7);
}

template <class Gap>
BLOOMERY_INLINE_TILES void load_a(Gap& gap, const bfloat16* a) {
  gap();
  _tile_loadd(4, a, 64);
  gap();
  _tile_loadd(5, a + kTile, 64);
}

// b comes from the second cache and goes past the first.
template <class Gap>
BLOOMERY_INLINE_TILES void load_b(Gap& gap, const bfloat16* b) {
  gap();
  _tile_stream_loadd(6, b, 64);
  gap();
  _tile_stream_loadd(7, b + kTile, 64);
}

// Four products for four loads in a step. A tile is loaded for the next step as soon as it has been
// used, so that where the core is ours alone no product waits. The four gaps of a step that may
// fetch ask for as much as it has of b.
template <class Gap>
BLOOMERY_INLINE_TILES void multiply_steps(Gap gap, const RowTiles& a, const bfloat16* b,
                                          std::int64_t num_steps, bool add, float* c,
                                          std::int64_t ldc, const Next& next) {
  const Idle idle;
  Ahead ahead(next.c != nullptr ? next.c : c, ldc);
  const std::int64_t stride = a.stride * 2;
  const bfloat16* rows = a.data;
  load_sums(add, c, ldc);
  load_b(idle, b);
  idle();
  _tile_loadd(4, rows, stride);
  for (std::int64_t step = 1; step <= num_steps; ++step) {
    const bool more = step < num_steps;
    ahead.fetch();
    for (Lines& lines : next.lines) {
      lines.take(next.lines_a_step, FetchToWrite{});
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

// c += sums, or c = sums.
__attribute__((target("avx512f"))) void write_sums(const float* sums, bool add, float* c,
                                                   std::int64_t ldc) {
  for (std::int64_t row = 0; row < 2 * kRows; ++row) {
    for (std::int64_t column = 0; column < 2 * kRows; column += 16) {
      float* const to = c + row * ldc + column;
      const __m512 sum = _mm512_load_ps(sums + row * 2 * kRows + column);
      _mm512_storeu_ps(to, add ? _mm512_add_ps(_mm512_loadu_ps(to), sum) : sum);
    }
  }
}

// First all products but those of planes 0, whose sums are small and round little, then those of
// planes 0, then what c holds: otherwise each of the six would round at the size of c. The 32 gaps
// of a step in the first loop ask for as much as a step has of b.
template <class Gap>
BLOOMERY_INLINE_TILES void multiply_planes(Gap gap, const bfloat16* a, const bfloat16* b,
                                           std::int64_t num_steps, bool add, float* c,
                                           std::int64_t ldc, const Next& next) {
  constexpr std::int64_t kPair = 2 * kTile, kStep = kPlanes * kPair;
  static_assert(kStep == 32 * 3 * kDepth);
  Ahead ahead(next.c != nullptr ? next.c : c, ldc);
  load_sums(false, c, ldc);
  for (std::int64_t step = 0; step < num_steps; ++step) {
    const bfloat16 *const x = a + step * kStep, *const y = b + step * kStep;
    ahead.fetch();
    ahead.fetch();
    for (Lines& lines : next.lines) {
      lines.take(next.lines_a_step, FetchToWrite{});
    }
    load_a(gap, x);
    load_b(gap, y + 2 * kPair);
    multiply_tiles(gap);
    load_b(gap, y + kPair);
    multiply_tiles(gap);
    load_a(gap, x + kPair);
    multiply_tiles(gap);
    load_b(gap, y);
    multiply_tiles(gap);
    load_a(gap, x + 2 * kPair);
    multiply_tiles(gap);
  }
  const Idle idle;
  for (std::int64_t step = 0; step < num_steps; ++step) {
    load_b(idle, b + step * kStep);
    load_a(idle, a + step * kStep);
    multiply_tiles(idle);
  }
  alignas(64) float sums[4 * kRows * kRows];
  store_sums(sums, 2 * kRows);
  write_sums(sums, add, c, ldc);
}

}  // namespace

BLOOMERY_TILES void multiply_hardware(const RowTiles& a, const bfloat16* b, std::int64_t num_steps,
                                      bool add, float* c, std::int64_t ldc, const Next& next) {
  if (next.b != nullptr) {
    multiply_steps(Fetch<8>{next.b}, a, b, num_steps, add, c, ldc, next);
  } else {
    multiply_steps(Idle{}, a, b, num_steps, add, c, ldc, next);
  }
}

BLOOMERY_TILES void multiply_planes_hardware(const bfloat16* a, const bfloat16* b,
                                             std::int64_t num_steps, bool add, float* c,
                                             std::int64_t ldc, const Next& next) {
  if (next.b != nullptr) {
    multiply_planes(Fetch<3>{next.b}, a, b, num_steps, add, c, ldc, next);
  } else {
    multiply_planes(Idle{}, a, b, num_steps, add, c, ldc, next);
  }
}
#undef BLOOMERY_TILES
#undef BLOOMERY_INLINE_TILES
#else
void multiply_hardware(const RowTiles& a, const bfloat16* b, std::int64_t num_steps, bool add,
                       float* c, std::int64_t ldc, const Next& next) {
  multiply_emulated(a, b, num_steps, add, c, ldc, next);
}
void multiply_planes_hardware(const bfloat16* a, const bfloat16* b, std::int64_t num_steps,
                              bool add, float* c, std::int64_t ldc, const Next& next) {
  multiply_planes_emulated(a, b, num_steps, add, c, ldc, next);
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

void multiply_planes_emulated(const bfloat16* a, const bfloat16* b, std::int64_t num_steps,
                              bool add, float* c, std::int64_t ldc, const Next&) {
  constexpr std::int64_t kPair = 2 * kTile, kStep = kPlanes * kPair, kSide = 2 * kRows;
  constexpr std::pair<int, int> kSmall[] = {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}};
  std::array<float, kSide * kSide> sums{};
  const auto multiply_step = [&](std::int64_t step, int left, int right) {
    multiply_emulated({a + step * kStep + left * kPair, kDepth, kTile, 0},
                      b + step * kStep + right * kPair, 1, true, sums.data(), kSide);
  };
  for (std::int64_t step = 0; step < num_steps; ++step) {
    for (const auto& [left, right] : kSmall) {
      multiply_step(step, left, right);
    }
  }
  for (std::int64_t step = 0; step < num_steps; ++step) {
    multiply_step(step, 0, 0);
  }
  for (std::int64_t i = 0; i < kSide * kSide; ++i) {
    float& to = c[i / kSide * ldc + i % kSide];
    to = add ? to + sums[static_cast<std::size_t>(i)] : sums[static_cast<std::size_t>(i)];
  }
}

}  // namespace bloomery::amx
