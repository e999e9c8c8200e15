// AmxProduct on random shapes, cut in random ways: right against fp64, and the same bits whatever
// the blocks.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "ops/matmul/amx.h"

namespace bloomery {
namespace {

// Random whole numbers in order.
class Dice {
 public:
  explicit Dice(const std::string& purpose) : key_(random_key(1, purpose)) {}
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(random_uniform(key_, next_++) * static_cast<double>(count));
  }
  std::int64_t in(std::int64_t least, std::int64_t most) { return least + below(most - least + 1); }

 private:
  const RandomKey key_;
  std::uint64_t next_ = 0;
};

struct Shape {
  std::int64_t m, n, k;
};

// A matrix whose rows are a little longer than what counts of them; the rest is NaN.
template <class In>
struct Matrix {
  std::vector<In> values;
  std::int64_t ld;
  bool transposed;

  Matrix(const std::string& purpose, std::int64_t rows, std::int64_t columns, bool transpose,
         std::int64_t gap)
      : ld((transpose ? rows : columns) + gap), transposed(transpose) {
    const std::int64_t stored_rows = transpose ? columns : rows;
    for (std::int64_t i = 0; i < stored_rows * ld - gap; ++i) {
      const double value = random_normal(random_key(2, purpose), i);
      values.emplace_back(static_cast<float>(i % ld < ld - gap ? value : NAN));
    }
  }
  double at(std::int64_t row, std::int64_t column) const {
    return static_cast<float>(
        values[static_cast<std::size_t>(transposed ? column * ld + row : row * ld + column)]);
  }
  typename AmxProduct<In>::Operand operand() const { return {values.data(), ld, transposed}; }
};

template <class In>
class Product {
 public:
  using Tiles = typename AmxProduct<In>::Tiles;

  Product(const Shape& shape, Dice& dice, Tiles tiles)
      : s_(shape),
        tiles_(tiles),
        a_("a", shape.m, shape.k, dice.below(2) == 1, dice.below(4)),
        b_("b", shape.k, shape.n, dice.below(2) == 1, dice.below(4)) {}

  // Block by block; into what c holds, or else by strips that are copied to it.
  enum class Way { strips, into, added };
  std::vector<float> c(std::int64_t block_rows, std::int64_t block_columns, Way way) {
    const AmxProduct<In> product(stream_, {s_.m, s_.n, s_.k, block_rows, block_columns},
                                 a_.operand(), b_.operand(), tiles_);
    std::vector<float> c(static_cast<std::size_t>(s_.m * s_.n), way == Way::added ? 0.3f : NAN);
    const std::int64_t across = (s_.n + block_columns - 1) / block_columns;
    const std::int64_t down = (s_.m + block_rows - 1) / block_rows;
    device_.pool().for_each(across * down, [&](std::int64_t block) {
      const std::int64_t i = block / across * block_rows, j = block % across * block_columns;
      if (way != Way::strips) {
        return product.block_into(i, j, way == Way::added, c.data() + i * s_.n + j, s_.n);
      }
      product.block(i, j,
                    [&](std::int64_t row, std::int64_t rows, const float* from, std::int64_t ld) {
                      for (std::int64_t r = 0; r < rows; ++r) {
                        std::copy_n(from + r * ld, std::min(block_columns, s_.n - j),
                                    c.data() + (row + r) * s_.n + j);
                      }
                    });
    });
    return c;
  }

  // The largest error, relative to sqrt(k).
  double error(const std::vector<float>& c) const {
    double worst = 0;
    for (std::int64_t i = 0; i < s_.m; ++i) {
      for (std::int64_t j = 0; j < s_.n; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < s_.k; ++k) {
          sum += a_.at(i, k) * b_.at(k, j);
        }
        const double error = std::abs(sum - c[static_cast<std::size_t>(i * s_.n + j)]);
        worst = error <= worst ? worst : error;  // NaN is an error
      }
    }
    return worst / std::sqrt(static_cast<double>(s_.k));
  }

 private:
  const Shape s_;
  const Tiles tiles_;
  const Matrix<In> a_, b_;
  Device device_{{.num_threads = 3, .poison = true}};
  Stream stream_{device_};
};

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> words;
  for (const float value : values) words.push_back(std::bit_cast<std::uint32_t>(value));
  return words;
}

// Whole strips, or more than there is.
std::int64_t random_block(Dice& dice, std::int64_t extent) {
  return dice.below(4) == 0 ? extent + dice.below(50) : 32 * dice.in(1, extent / 32 + 2);
}

template <class In>
void check_shape(const Shape& shape, Dice& dice, typename Product<In>::Tiles tiles) {
  using Way = typename Product<In>::Way;
  SCOPED_TRACE(::testing::Message() << shape.m << 'x' << shape.n << 'x' << shape.k);
  Product<In> product(shape, dice, tiles);
  const std::vector<float> whole = product.c(shape.m, shape.n, Way::strips);
  EXPECT_LE(product.error(whole), 4e-6);
  const bool straight = shape.m % 32 == 0 && shape.n % 32 == 0;
  const std::vector<float> added =
      straight ? product.c(shape.m, shape.n, Way::added) : std::vector<float>{};
  for (int cut = 0; cut < 3; ++cut) {
    const std::int64_t rows = random_block(dice, shape.m), columns = random_block(dice, shape.n);
    SCOPED_TRACE(::testing::Message() << "blocks of " << rows << 'x' << columns);
    EXPECT_EQ(bits(product.c(rows, columns, Way::strips)), bits(whole));
    if (straight) {
      EXPECT_EQ(bits(product.c(rows, columns, Way::into)), bits(whole));
      EXPECT_EQ(bits(product.c(rows, columns, Way::added)), bits(added));
    }
  }
}

template <class In>
void check_shapes(typename Product<In>::Tiles tiles) {
  Dice dice("shapes");
  for (int i = 0; i < 8; ++i) {
    check_shape<In>({dice.in(1, 150), dice.in(1, 150), dice.in(1, 100)}, dice, tiles);
    check_shape<In>({32 * dice.in(1, 4), 32 * dice.in(1, 4), dice.in(1, 100)}, dice, tiles);
  }
  // Wide blocks take these in several panels, narrow ones in one.
  for (const Shape& shape : {Shape{40, 800, 600}, Shape{64, 800, 530}, Shape{70, 256, 450}}) {
    if (std::is_same_v<In, bfloat16> || shape.n < 800) {
      check_shape<In>(shape, dice, tiles);
    }
  }
}

TEST(AmxBlocks, GiveTheSameBitsWithoutTheInstructions) {
  check_shapes<bfloat16>(AmxProduct<bfloat16>::Tiles::emulated);
  check_shapes<float>(AmxProduct<float>::Tiles::emulated);
}

TEST(AmxBlocks, GiveTheSameBitsOnTheTiles) {
  if (!amx_usable()) GTEST_SKIP() << "no AMX on this processor";
  check_shapes<bfloat16>(AmxProduct<bfloat16>::Tiles::hardware);
  check_shapes<float>(AmxProduct<float>::Tiles::hardware);
}

// Sums of whole products, not of blocks, decide how a result comes to be.
TEST(AmxBlocks, OnlyProductsOfWholeStripsGoStraightIntoTheResult) {
  Device device({.num_threads = 1});
  Stream stream(device);
  const std::vector<bfloat16> numbers(64 * 64);
  for (const auto& [m, n] : {std::pair{64, 64}, {64, 40}, {40, 64}}) {
    const AmxProduct<bfloat16> product(stream, {m, n, 8, 32, 32}, {numbers.data(), 8, false},
                                       {numbers.data(), n, false},
                                       AmxProduct<bfloat16>::Tiles::emulated);
    EXPECT_EQ(product.goes_straight_into_c(), m == 64 && n == 64);
  }
}

}  // namespace
}  // namespace bloomery
