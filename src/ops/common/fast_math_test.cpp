#include "ops/common/fast_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace bloomery::testing {
namespace {

TEST(FastMath, SineAndCosineAreAccurateAtLargeAngles) {
  std::mt19937_64 engine(3);
  std::uniform_real_distribution<double> exponent(-20, 30);
  for (int i = 0; i < 200000; ++i) {
    const double angle = std::exp2(exponent(engine)) * (i % 2 == 0 ? 1 : -1);
    const SinCos both = fast_sincos(angle);
    ASSERT_NEAR(static_cast<double>(both.sin), std::sin(angle), 1.2e-7) << angle;
    ASSERT_NEAR(static_cast<double>(both.cos), std::cos(angle), 1.2e-7) << angle;
  }
}

TEST(FastMath, ExponentialIsAccurate) {
  for (double x = -87.2; x < 88.7; x += 3.7e-4) {
    const auto rounded = static_cast<float>(x);
    const double expected = std::exp(static_cast<double>(rounded));
    ASSERT_NEAR(static_cast<double>(fast_exp(rounded)) / expected, 1.0, 1.5e-7) << x;
  }
  EXPECT_EQ(fast_exp(0.0f), 1.0f);
  EXPECT_EQ(fast_exp(-INFINITY), 0.0f);
  EXPECT_EQ(fast_exp(-88.0f), 0.0f);
  EXPECT_EQ(fast_exp(INFINITY), INFINITY);
  EXPECT_EQ(fast_exp(89.0f), INFINITY);
  EXPECT_TRUE(std::isnan(fast_exp(NAN)));
}

TEST(FastMath, BoundedExponentialHasTheSameBits) {
  const auto bounded = [](float x) { return exp_up_to_88<float, std::int32_t>(x); };
  for (double x = -89; x <= 88; x += 3.7e-4) {
    const auto rounded = static_cast<float>(x);
    ASSERT_EQ(bounded(rounded), fast_exp(rounded)) << x;
  }
  EXPECT_EQ(bounded(-INFINITY), 0.0f);
  EXPECT_EQ(bounded(-1e30f), 0.0f);
  for (const std::uint32_t bits : {0x7FC00000u, 0xFFC00000u, 0xFFFFFFFFu, 0x7F800001u}) {
    EXPECT_TRUE(std::isnan(bounded(std::bit_cast<float>(bits)))) << bits;
  }
}

TEST(FastMath, BriefPowersOfTwoAreExactEnough) {
  const auto power = [](float x) { return brief_exp2<float, std::int32_t>(x); };
  for (double x = -125.9; x < 127; x += 3.7e-4) {
    const auto rounded = static_cast<float>(x);
    const double expected = std::exp2(static_cast<double>(rounded));
    ASSERT_NEAR(static_cast<double>(power(rounded)) / expected, 1.0, 0x1p-18) << x;
  }
  EXPECT_EQ(power(0.0f), 1.0f);
  EXPECT_EQ(power(-126.6f), 0.0f);
  EXPECT_EQ(power(-INFINITY), 0.0f);
  EXPECT_TRUE(std::isnan(power(NAN)));
}

}  // namespace
}  // namespace bloomery::testing
