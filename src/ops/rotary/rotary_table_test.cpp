// Frequencies against those of transformers (families.md 1.1 says how they were made).
#include "ops/rotary/rotary_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"

namespace bloomery {
namespace {

using Kind = RotaryScaling::Kind;
using Expected = std::vector<std::pair<int, double>>;

void expect_frequencies(const RotaryTable& table, const Expected& expected) {
  for (const auto& [pair, frequency] : expected) {
    EXPECT_NEAR(table.frequencies[static_cast<std::size_t>(pair)], frequency, 2e-7 * frequency)
        << "pair " << pair;
  }
}

TEST(RotaryTable, PlainAndLinear) {
  const RotaryTable plain = make_rotary_table(10000, 64, {}, 0);
  EXPECT_EQ(plain.num_pairs, 32);
  EXPECT_EQ(plain.magnitude, 1);
  EXPECT_EQ(plain.frequencies[0], 1);
  EXPECT_EQ(plain.frequencies[16], std::pow(10000, -0.5));
  const RotaryTable linear = make_rotary_table(10000, 64, {.kind = Kind::linear, .factor = 4}, 100);
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(linear.frequencies[i], plain.frequencies[i] / 4);
  }
}

TEST(RotaryTable, Llama3) {
  const RotaryTable table =
      make_rotary_table(5e5, 128, {.kind = Kind::llama3, .factor = 8, .original_length = 8192}, 0);
  expect_frequencies(
      table, {{16, 3.76060309e-2}, {30, 1.37189357e-3}, {36, 7.78465527e-5}, {63, 3.06892599e-7}});
  EXPECT_EQ(table.magnitude, 1);
}

TEST(RotaryTable, Yarn) {
  RotaryScaling scaling{.kind = Kind::yarn, .factor = 4, .original_length = 32768};
  const RotaryTable table = make_rotary_table(1e6, 128, scaling, 0);
  expect_frequencies(
      table, {{16, 3.16227766e-2}, {30, 1.06436098e-3}, {36, 1.79841156e-4}, {63, 3.10234440e-7}});
  EXPECT_NEAR(table.magnitude, 1.13862944, 1e-8);

  scaling.truncate = false;
  const RotaryTable smooth = make_rotary_table(1e6, 128, scaling, 0);
  EXPECT_NE(smooth.frequencies[30], table.frequencies[30]);
  EXPECT_EQ(smooth.frequencies[63], table.frequencies[63]);

  scaling.mscale = scaling.mscale_all_dim = 0.707;
  EXPECT_EQ(make_rotary_table(1e6, 128, scaling, 0).magnitude, 1);
  scaling.mscale_all_dim = 1;
  EXPECT_NEAR(make_rotary_table(1e6, 128, scaling, 0).magnitude,
              (0.0707 * std::log(4) + 1) / (0.1 * std::log(4) + 1), 1e-15);
  scaling.attention_factor = 1.5;
  EXPECT_EQ(make_rotary_table(1e6, 128, scaling, 0).magnitude, 1.5);
}

TEST(RotaryTable, DynamicLooksAtTheLength) {
  const RotaryScaling scaling{.kind = Kind::dynamic, .factor = 2, .original_length = 4096};
  expect_frequencies(make_rotary_table(1e4, 128, scaling, 8192),
                     {{1, 0.850994291}, {63, 3.84927328e-5}});
  const RotaryTable plain = make_rotary_table(1e4, 128, {}, 8192);
  EXPECT_EQ(make_rotary_table(1e4, 128, scaling, 4096).frequencies, plain.frequencies);
  EXPECT_EQ(make_rotary_table(1e4, 128, scaling, 7).frequencies, plain.frequencies);
}

TEST(RotaryTable, RefusesWhatMakesNoSense) {
  const auto make = [](double base, std::int64_t dim, const RotaryScaling& scaling) {
    static_cast<void>(make_rotary_table(base, dim, scaling, 1));
  };
  EXPECT_THROW(make(0, 4, {}), Error);
  EXPECT_THROW(make(10, 3, {}), Error);
  EXPECT_THROW(make(10, 258, {}), Error);
  EXPECT_THROW(make(10, 4, {.kind = Kind::linear, .factor = 0}), Error);
  EXPECT_THROW(make(10, 4, {.kind = Kind::llama3, .factor = 8}), Error);  // original length
  EXPECT_THROW(
      make(10, 4,
           {.kind = Kind::llama3, .factor = 8, .original_length = 8, .low_frequency_factor = 4}),
      Error);
  EXPECT_THROW(make(10, 2, {.kind = Kind::dynamic, .factor = 2, .original_length = 8}), Error);
  EXPECT_THROW(
      make(10, 4,
           {.kind = Kind::yarn, .factor = 2, .original_length = 8, .beta_fast = 1, .beta_slow = 2}),
      Error);
}

}  // namespace
}  // namespace bloomery
