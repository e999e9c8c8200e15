#include "ops/matmul/amx.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "ops/matmul/amx_tiles.h"

namespace bloomery {
namespace {

std::vector<bfloat16> random_matrix(const std::string& purpose, std::int64_t count) {
  std::vector<bfloat16> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.emplace_back(static_cast<float>(random_uniform(random_key(1, purpose), i) - 0.5));
  }
  return values;
}

struct Shape {
  std::int64_t m, n, k;
};

// The largest error, relative to sqrt(k), of the product computed block by block.
double error_of(const Shape& s, bool transpose_a, bool transpose_b, AmxProduct::Tiles tiles) {
  const std::vector<bfloat16> a = random_matrix("a", s.m * s.k), b = random_matrix("b", s.k * s.n);
  Device device({.num_threads = 2, .poison = true});
  Stream stream(device);
  constexpr std::int64_t kBlock = 64;
  const AmxProduct product(stream, {s.m, s.n, s.k, kBlock, kBlock},
                           {a.data(), transpose_a ? s.m : s.k, transpose_a},
                           {b.data(), transpose_b ? s.k : s.n, transpose_b}, tiles);
  std::vector<float> c(static_cast<std::size_t>(s.m * s.n), NAN);
  for (std::int64_t i = 0; i < s.m; i += kBlock) {
    for (std::int64_t j = 0; j < s.n; j += kBlock) {
      const std::int64_t columns = std::min(kBlock, s.n - j);
      if (s.m % kBlock == 0 && s.n % kBlock == 0) {
        float* to = c.data() + i * s.n + j;
        product.block_into(i, j, false, to, s.n);
        product.block_into(i, j, true, to, s.n);
        for (std::int64_t at = 0; at < kBlock * kBlock; ++at) {
          to[at / kBlock * s.n + at % kBlock] /= 2;
        }
        continue;
      }
      product.block(i, j,
                    [&](std::int64_t row, std::int64_t rows, const float* from, std::int64_t ld) {
                      for (std::int64_t r = 0; r < rows; ++r) {
                        std::copy_n(from + r * ld, columns, c.data() + (row + r) * s.n + j);
                      }
                    });
    }
  }
  double worst = 0;
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < s.k; ++k) {
        sum += static_cast<double>(static_cast<float>(a[transpose_a ? k * s.m + i : i * s.k + k])) *
               static_cast<float>(b[transpose_b ? j * s.k + k : k * s.n + j]);
      }
      const double error = std::abs(sum - c[i * s.n + j]);
      worst = std::isnan(error) ? error : std::max(worst, error);
    }
  }
  return worst / std::sqrt(static_cast<double>(s.k));
}

void expect_right_products(AmxProduct::Tiles tiles) {
  for (const Shape& shape : {Shape{1, 1, 1},
                             {32, 32, 32},
                             {33, 31, 65},
                             {16, 48, 96},
                             {96, 64, 31},
                             {70, 130, 640},
                             {200, 70, 640},
                             {64, 64, 7000},
                             {192, 64, 3000},
                             {128, 192, 2500}}) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        EXPECT_LE(error_of(shape, transpose_a, transpose_b, tiles), 2e-6)
            << shape.m << 'x' << shape.n << 'x' << shape.k << ' ' << transpose_a << transpose_b;
      }
    }
  }
}

TEST(Amx, LinesAreTakenRowByRowAndNoneTwice) {
  const std::vector<char> matrix(1000);
  amx::Lines lines{.row = matrix.data(), .rows = 2, .bytes = 130, .stride = 500};
  std::vector<std::int64_t> taken;
  const auto use = [&](const char* address) { taken.push_back(address - matrix.data()); };
  lines.take(2, use);
  EXPECT_EQ(taken, (std::vector<std::int64_t>{0, 64}));
  lines.take(2, use);
  EXPECT_EQ(taken, (std::vector<std::int64_t>{0, 64, 128, 500}));
  lines.take(9, use);
  EXPECT_EQ(taken, (std::vector<std::int64_t>{0, 64, 128, 500, 564, 628}));
  lines.take(1, use);
  EXPECT_EQ(taken.size(), 6u);
}

TEST(Amx, ProductsAreRightWithoutTheInstructions) {
  expect_right_products(AmxProduct::Tiles::emulated);
}

TEST(Amx, ProductsAreRightOnTheTiles) {
  if (!amx_usable()) GTEST_SKIP() << "no AMX on this processor";
  expect_right_products(AmxProduct::Tiles::hardware);
}

#if defined(__x86_64__)
TEST(Amx, VectorsPackAsTheDefinitionSays) {
  if (cpu_level() < 2) GTEST_SKIP() << "no AVX-512 here";
  const std::vector<bfloat16> matrix = random_matrix("packed", 40 * 40);
  const auto bits = [](const auto& pack) {
    std::vector<std::uint16_t> both[2];
    for (const bool vectors : {false, true}) {
      std::vector<bfloat16> tile(amx::kTile);
      pack(vectors, tile.data());
      for (const bfloat16 value : tile) both[vectors].push_back(value.bits);
    }
    return std::pair(both[0], both[1]);
  };
  for (const auto& [plain, fast] : {bits([&](bool v, bfloat16*to) {
                                      amx::pack_columns({&matrix[3], 40, 32, 16}, v, to);
                                    }),
                                    bits([&](bool v, bfloat16*to) {
                                      amx::pack_pairs({&matrix[5], 40, 32, 16}, v, to);
                                    }),
                                    bits([&](bool v, bfloat16*to) {
                                      amx::pack_pairs_transposed({&matrix[2], 40, 16, 32}, v, to);
                                    }),
                                    bits([&](bool v, bfloat16*to) {
                                      amx::pack_rows({&matrix[7], 40, 16, 32}, v, to);
                                    })}) {
    EXPECT_EQ(plain, fast);
  }
}
#endif

}  // namespace
}  // namespace bloomery
