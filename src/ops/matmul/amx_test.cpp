#include "ops/matmul/amx.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "ops/matmul/amx_planes.h"
#include "ops/matmul/amx_tiles.h"

namespace bloomery {
namespace {

template <class In>
std::vector<In> random_matrix(const std::string& purpose, std::int64_t count) {
  std::vector<In> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.emplace_back(static_cast<float>(random_uniform(random_key(1, purpose), i) - 0.5));
  }
  return values;
}

struct Shape {
  std::int64_t m, n, k;
};

// The largest error, relative to sqrt(k), of the product computed block by block.
template <class In>
double error_of(const Shape& s, bool transpose_a, bool transpose_b,
                typename AmxProduct<In>::Tiles tiles) {
  const std::vector<In> a = random_matrix<In>("a", s.m * s.k),
                        b = random_matrix<In>("b", s.k * s.n);
  Device device({.num_threads = 2, .poison = true});
  Stream stream(device);
  constexpr std::int64_t kBlock = 64;
  const AmxProduct<In> product(stream, {s.m, s.n, s.k, kBlock, kBlock},
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

template <class In>
void expect_right_products(typename AmxProduct<In>::Tiles tiles) {
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
    if (tiles == AmxProduct<In>::Tiles::emulated && std::is_same_v<In, float> &&
        shape.m * shape.n * shape.k > 10'000'000) {
      continue;  // takes seconds
    }
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        EXPECT_LE(error_of<In>(shape, transpose_a, transpose_b, tiles), 2e-6)
            << shape.m << 'x' << shape.n << 'x' << shape.k << ' ' << transpose_a << transpose_b;
      }
    }
  }
}

TEST(Amx, LinesAreTakenRowByRowAndNoneTwice) {
  const std::vector<char> matrix(1000);
  amx::Lines lines{.row = matrix.data(), .rows = 2, .bytes = 130, .stride = 500};
  std::vector<std::int64_t> asked;
  const auto ask = [&](const char* address) { asked.push_back(address - matrix.data()); };
  lines.take(2, ask);
  EXPECT_EQ(asked, (std::vector<std::int64_t>{0, 64}));
  lines.take(2, ask);
  EXPECT_EQ(asked, (std::vector<std::int64_t>{0, 64, 128, 500}));
  lines.take(9, ask);
  EXPECT_EQ(asked, (std::vector<std::int64_t>{0, 64, 128, 500, 564, 628}));
  lines.take(1, ask);
  EXPECT_EQ(asked.size(), 6u);
}

TEST(Amx, ProductsAreRightWithoutTheInstructions) {
  expect_right_products<bfloat16>(AmxProduct<bfloat16>::Tiles::emulated);
  expect_right_products<float>(AmxProduct<float>::Tiles::emulated);
}

TEST(Amx, ProductsAreRightOnTheTiles) {
  if (!amx_usable()) GTEST_SKIP() << "no AMX on this processor";
  expect_right_products<bfloat16>(AmxProduct<bfloat16>::Tiles::hardware);
  expect_right_products<float>(AmxProduct<float>::Tiles::hardware);
}

// 32 x 32 numbers of all sizes, with what is special among them.
std::vector<float> all_sizes() {
  std::vector<float> values;
  for (std::int64_t i = 0; i < amx::kSquare * amx::kSquare; ++i) {
    const double exponent = 200 * random_uniform(random_key(1, "exponent"), i) - 80;
    values.push_back(
        static_cast<float>((random_uniform(random_key(1, "size"), i) - 0.5) * std::exp2(exponent)));
  }
  values[70] = std::numeric_limits<float>::infinity();
  values[171] = -values[70];
  values[272] = std::nanf("");
  values[373] = std::bit_cast<float>(0x7F800001u);  // a NaN whose upper half is an infinity
  values[474] = std::numeric_limits<float>::max();
  values[575] = -values[474];
  values[676] = -0.0f;
  return values;
}

std::vector<bfloat16> planes_of(const std::vector<float>& values, bool vectors) {
  std::vector<bfloat16> planes(amx::kPlanes * values.size(), bfloat16(NAN));
  amx::split(values.data(), amx::kSquare, amx::kSquare, amx::kSquare, vectors, planes.data());
  return planes;
}

TEST(Amx, PlanesAddUpToTheNumber) {
  const std::vector<float> values = all_sizes();
  const std::vector<bfloat16> planes = planes_of(values, false);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto plane = [&](std::size_t p) {
      return static_cast<float>(planes[p * values.size() + i]);
    };
    const double sum = double{plane(0)} + plane(1) + plane(2), value = values[i];
    if (std::isnan(values[i])) {
      EXPECT_TRUE(std::isnan(sum)) << i;
    } else if (std::isinf(values[i])) {
      EXPECT_EQ(sum, value) << i;
    } else {
      EXPECT_LE(std::abs(sum - value), std::exp2(-25) * std::abs(value)) << i << ' ' << value;
    }
  }
}

// The largest error of an element, beside that of adding the same products one by one in fp32.
TEST(Amx, PlanesLoseNoMoreThanVectors) {
  constexpr std::int64_t kSide = 64, kInner = 1536;
  const std::vector<float> a = random_matrix<float>("a", kSide * kInner);
  const std::vector<float> b = random_matrix<float>("b", kSide * kInner);
  Device device({.num_threads = 1, .poison = true});
  Stream stream(device);
  for (const auto tiles :
       {AmxProduct<float>::Tiles::emulated, AmxProduct<float>::Tiles::hardware}) {
    if (tiles == AmxProduct<float>::Tiles::hardware && !amx_usable()) continue;
    const AmxProduct<float> product(stream, {kSide, kSide, kInner, kSide, kSide},
                                    {a.data(), kInner, false}, {b.data(), kInner, true}, tiles);
    std::vector<float> c(kSide * kSide, NAN);
    product.block_into(0, 0, false, c.data(), kSide);
    double worst = 0, worst_of_vectors = 0;
    for (std::int64_t i = 0; i < kSide * kSide; ++i) {
      double exact = 0;
      float sum = 0;
      for (std::int64_t k = 0; k < kInner; ++k) {
        const float x = a[i / kSide * kInner + k], y = b[i % kSide * kInner + k];
        exact += double{x} * y;
        sum = std::fma(x, y, sum);
      }
      worst = std::max(worst, std::abs(exact - c[static_cast<std::size_t>(i)]));
      worst_of_vectors = std::max(worst_of_vectors, std::abs(exact - sum));
    }
    EXPECT_LE(worst, worst_of_vectors);
  }
}

#if defined(__x86_64__)
TEST(Amx, VectorsSplitAsTheDefinitionSays) {
  if (cpu_level() < 3) GTEST_SKIP() << "no AVX-512 with bf16 here";
  std::vector<std::uint16_t> both[2];
  for (const bool vectors : {false, true}) {
    for (const bfloat16 value : planes_of(all_sizes(), vectors))
      both[vectors].push_back(value.bits);
  }
  EXPECT_EQ(both[0], both[1]);
}

TEST(Amx, VectorsPackAsTheDefinitionSays) {
  if (cpu_level() < 2) GTEST_SKIP() << "no AVX-512 here";
  const std::vector<bfloat16> matrix = random_matrix<bfloat16>("packed", 40 * 40);
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
