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

struct ProductSizes {
  std::int64_t m, n, k;
};

// A matrix whose rows are a little longer than what counts of them; the rest is NaN.
struct Matrix {
  std::vector<bfloat16> values;
  std::int64_t ld;
  bool transposed;

  Matrix(const std::string& purpose, std::int64_t rows, std::int64_t columns, bool transpose,
         std::int64_t gap)
      : ld((transpose ? rows : columns) + gap), transposed(transpose) {
    const std::int64_t stored_rows = transpose ? columns : rows;
    const RandomKey key = random_key(2, purpose);
    for (std::int64_t i = 0; i < stored_rows * ld - gap; ++i) {
      const double value = random_normal(key, i);
      values.emplace_back(static_cast<float>(i % ld < ld - gap ? value : NAN));
    }
  }
  double at(std::int64_t row, std::int64_t column) const {
    return static_cast<float>(
        values[static_cast<std::size_t>(transposed ? column * ld + row : row * ld + column)]);
  }
  AmxProduct::Operand operand() const { return {values.data(), ld, transposed}; }
};

class Product {
 public:
  using Tiles = AmxProduct::Tiles;

  Product(const ProductSizes& shape, Dice& dice, Tiles tiles)
      : Product(shape, dice.below(2) == 1, dice.below(2) == 1, dice, tiles) {}
  Product(const ProductSizes& shape, bool transpose_a, bool transpose_b, Dice& dice, Tiles tiles)
      : s_(shape),
        tiles_(tiles),
        a_("a", shape.m, shape.k, transpose_a, dice.below(4)),
        b_("b", shape.k, shape.n, transpose_b, dice.below(4)) {}

  // Block by block; into what c holds, or else by strips that are copied to it.
  enum class Way { strips, into, added };
  std::vector<float> c(std::int64_t block_rows, std::int64_t block_columns, Way way) {
    const AmxProduct product(stream_, {s_.m, s_.n, s_.k, block_rows, block_columns}, a_.operand(),
                             b_.operand(), tiles_);
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

  // The largest error, relative to sqrt(k), of every so many elements.
  double error(const std::vector<float>& c, std::int64_t every = 1) const {
    double worst = 0;
    for (std::int64_t at = 0; at < s_.m * s_.n; at += every) {
      double sum = 0;
      for (std::int64_t k = 0; k < s_.k; ++k) {
        sum += a_.at(at / s_.n, k) * b_.at(k, at % s_.n);
      }
      const double error = std::abs(sum - c[static_cast<std::size_t>(at)]);
      worst = error <= worst ? worst : error;  // NaN is an error
    }
    return worst / std::sqrt(static_cast<double>(s_.k));
  }

 private:
  const ProductSizes s_;
  const Tiles tiles_;
  const Matrix a_, b_;
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

void check_shape(const ProductSizes& shape, Dice& dice, Product::Tiles tiles) {
  using Way = Product::Way;
  SCOPED_TRACE(::testing::Message() << shape.m << 'x' << shape.n << 'x' << shape.k);
  Product product(shape, dice, tiles);
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

void check_shapes(Product::Tiles tiles) {
  Dice dice("shapes");
  for (int i = 0; i < 8; ++i) {
    check_shape({dice.in(1, 150), dice.in(1, 150), dice.in(1, 100)}, dice, tiles);
    check_shape({32 * dice.in(1, 4), 32 * dice.in(1, 4), dice.in(1, 100)}, dice, tiles);
  }
  check_shape({40, 130, 800}, dice, tiles);  // one panel that visits c more than once
}

// A product that wide blocks compute in several panels and narrow ones in one.
struct Panelled {
  ProductSizes shape;
  bool transpose_a;
  std::int64_t narrow;  // columns of a block
  struct Block {
    std::int64_t rows, columns;
  };
  Block own, shared;  // wide: one packs for itself what others share
};

void check_panels(const Panelled& p, Dice& dice, Product::Tiles tiles) {
  using Way = Product::Way;
  const auto& [m, n, k] = p.shape;
  SCOPED_TRACE(::testing::Message() << m << 'x' << n << 'x' << k);
  Product product(p.shape, p.transpose_a, !p.transpose_a, dice, tiles);
  ASSERT_GE(AmxProduct::panel_depth(p.narrow, k), k);
  const std::vector<float> whole = product.c(m, p.narrow, Way::strips);
  EXPECT_LE(product.error(whole, 101), 4e-6);
  const std::vector<float> added = product.c(m, p.narrow, Way::added);
  for (const auto& [block, way] : {std::pair{p.own, Way::strips}, {p.shared, Way::into}}) {
    SCOPED_TRACE(::testing::Message() << "blocks of " << block.rows << 'x' << block.columns);
    ASSERT_LT(AmxProduct::panel_depth(block.columns, k), k);
    EXPECT_EQ(bits(product.c(block.rows, block.columns, way)), bits(whole));
    EXPECT_EQ(bits(product.c(block.rows, block.columns, Way::added)), bits(added));
  }
}

// The last panel, and its last step, are shorter than the others. An operand that three blocks
// need is shared: b in the first product, the transposed a in the second.
void check_panels(Product::Tiles tiles) {
  Dice dice("panels");
  check_panels({{96, 800, 900}, false, 384, {96, 800}, {32, 800}}, dice, tiles);
  check_panels({{32, 1632, 900}, true, 384, {32, 832}, {32, 800}}, dice, tiles);
}

TEST(AmxBlocks, GiveTheSameBitsWithoutTheInstructions) {
  check_shapes(AmxProduct::Tiles::emulated);
}

TEST(AmxBlocks, GiveTheSameBitsOnTheTiles) {
  if (!amx_usable()) GTEST_SKIP() << "no AMX on this processor";
  check_shapes(AmxProduct::Tiles::hardware);
}

TEST(AmxPanels, GiveTheSameBitsWithoutTheInstructions) {
  check_panels(AmxProduct::Tiles::emulated);
}

TEST(AmxPanels, GiveTheSameBitsOnTheTiles) {
  if (!amx_usable()) GTEST_SKIP() << "no AMX on this processor";
  check_panels(AmxProduct::Tiles::hardware);
}

// Sums of whole products, not of blocks, decide how a result comes to be.
TEST(AmxBlocks, OnlyProductsOfWholeStripsGoStraightIntoTheResult) {
  Device device({.num_threads = 1});
  Stream stream(device);
  const std::vector<bfloat16> numbers(64 * 64);
  for (const auto& [m, n] : {std::pair{64, 64}, {64, 40}, {40, 64}}) {
    const AmxProduct product(stream, {m, n, 8, 32, 32}, {numbers.data(), 8, false},
                             {numbers.data(), n, false}, AmxProduct::Tiles::emulated);
    EXPECT_EQ(product.goes_straight_into_c(), m == 64 && n == 64);
  }
}

}  // namespace
}  // namespace bloomery
