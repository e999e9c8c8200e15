// The epilogue of CPU products against the definition in fp64: every combination of what it does,
// on a block inside of d, with numbers that overflow, vanish or are none.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "ops/matmul/epilogue_cpu.h"

namespace bloomery {
namespace {

constexpr std::int64_t kRows = 5, kColumns = 70;
constexpr Block kBlock{1, 3, 3, 61};

constexpr Activation kActivations[] = {Activation::none,     Activation::gelu_tanh,
                                       Activation::gelu_erf, Activation::silu,
                                       Activation::relu,     Activation::squared_relu};

template <class T>
std::vector<T> numbers(const std::string& purpose, std::int64_t count, double deviation) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(T(static_cast<float>(deviation * random_normal(random_key(1, purpose), i))));
  }
  return values;
}

// Spread over the block, so that vectors and what is left of a row meet them.
template <class T>
void place_specials(std::vector<T>& d, std::int64_t first, float largest) {
  std::int64_t at = first;
  for (const float value : {0.0f, INFINITY, NAN, 87.0f, 88.0f, 1e4f, 1e15f, 1e-38f, largest}) {
    d[static_cast<std::size_t>(at)] = T(value);
    d[static_cast<std::size_t>(at + 7)] = T(-value);
    at += 13;
  }
}

template <class T>
double number(T x) {
  return static_cast<double>(load(&x));
}

template <class Out>
void expect_near(Out actual, double expected, double size) {
  const double relative = std::is_same_v<Out, bfloat16> ? std::exp2(-8) : 2e-5;
  const double value = number(actual);
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(value)) << value;
  } else if (std::abs(expected) > std::numeric_limits<float>::max()) {
    EXPECT_EQ(value, expected > 0 ? INFINITY : -INFINITY);
  } else {
    EXPECT_LE(std::abs(value - expected), relative * size + 1e-33) << value << " for " << expected;
  }
}

struct Combination {
  Activation activation = Activation::none, derivative = Activation::none;
  bool before = false, add = false, bias = false, in_place = false;
};

struct Expected {
  double value, size;  // size: of what is rounded on the way
};
Expected expected_of(const Combination& k, double x, double d, double at) {
  if (k.add) {
    return {x + d, std::abs(x) + std::abs(d)};
  }
  double y = x;
  if (k.derivative != Activation::none) {
    dispatch_activation(k.derivative,
                        [&](auto tag) { y = x * activation_derivative<decltype(tag)::value>(at); });
    return {y, std::max(std::abs(x), std::abs(y))};
  }
  dispatch_activation(k.activation, [&](auto tag) { y = activate<decltype(tag)::value>(x); });
  return {y, std::abs(y)};
}

template <class In, class Out>
void check(const Combination& k) {
  SCOPED_TRACE(concat("activation ", name(k.activation), " derivative ", name(k.derivative),
                      k.before ? " before" : "", k.add ? " add" : "", k.bias ? " bias" : "",
                      k.in_place ? " in place" : "", " to ", dtype_of<Out>));
  using Sum = Accumulator<In>;
  const std::int64_t count = kRows * kColumns, first = kBlock.i * kColumns + kBlock.j;
  std::vector<Out> d = numbers<Out>("d", count, 1);
  std::vector<Out> before = numbers<Out>("before", count, 2);
  std::vector<Out> at = numbers<Out>("at", count, 2);
  place_specials(at, first, 1e18f);  // fp32 has no squares of larger numbers
  const std::int64_t ld = k.in_place ? kColumns : kBlock.columns + 3;
  std::vector<Sum> scratch = numbers<Sum>("sums", kBlock.rows * ld, 3);
  if (k.derivative == Activation::none) {
    place_specials(scratch, 0, 3e38f);
  }
  const std::vector<In> bias =
      k.bias ? numbers<In>("bias", kColumns, 1) : std::vector<In>(kColumns, In(0.0f));
  if (k.in_place) {
    for (std::int64_t i = 0; i < kBlock.rows * kBlock.columns; ++i) {
      const std::int64_t r = i / kBlock.columns, c = i % kBlock.columns;
      d[static_cast<std::size_t>(first + r * kColumns + c)] =
          Out(scratch[static_cast<std::size_t>(r * ld + c)]);
    }
  }
  const std::vector<Out> old_d = d, old_before = before;
  const Matmul matmul{
      .d = {d.data(), dtype_of<Out>, {kRows, kColumns}},
      .add = k.add,
      .bias = {k.bias ? bias.data() : nullptr, dtype_of<In>, {kColumns}},
      .activation = k.activation,
      .before = {k.before ? before.data() : nullptr, dtype_of<Out>, {kRows, kColumns}},
      .derivative = k.derivative,
      .derivative_at = {at.data(), dtype_of<Out>, {kRows, kColumns}}};
  const Sum* sums = scratch.data();
  if constexpr (std::is_same_v<Out, Sum>) {
    sums = k.in_place ? d.data() + first : sums;
  }
  Epilogue<In, Out>(matmul, kColumns).finish(kBlock, sums, ld);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto place = static_cast<std::size_t>(i);
    const std::int64_t r = i / kColumns - kBlock.i, c = i % kColumns - kBlock.j;
    SCOPED_TRACE(concat("row ", r, " column ", c));
    if (r < 0 || r >= kBlock.rows || c < 0 || c >= kBlock.columns) {
      ASSERT_EQ(number(d[place]), number(old_d[place]));
      ASSERT_EQ(number(before[place]), number(old_before[place]));
      continue;
    }
    const double x = scratch[static_cast<std::size_t>(r * ld + c)] +
                     static_cast<Sum>(load(&bias[static_cast<std::size_t>(kBlock.j + c)]));
    const Expected expected = expected_of(k, x, number(old_d[place]), number(at[place]));
    expect_near(d[place], expected.value, expected.size);
    if (k.before) {
      expect_near(before[place], x, std::abs(x));
    }
  }
}

template <class In, class Out>
void check_combinations() {
  for (const bool in_place : {false, true}) {
    if (in_place && !std::is_same_v<Out, Accumulator<In>>) continue;
    for (const Activation kind : kActivations) {
      for (const bool bias : {false, true}) {
        check<In, Out>({.activation = kind, .bias = bias, .in_place = in_place});
        if (kind != Activation::none) {
          check<In, Out>({.activation = kind, .before = true, .bias = bias, .in_place = in_place});
        }
      }
      check<In, Out>({.derivative = kind, .in_place = in_place});
    }
    if (!in_place) {
      check<In, Out>({.add = true});
    }
  }
}

TEST(Epilogue, IsRightInEveryCombination) {
  check_combinations<float, float>();
  check_combinations<bfloat16, float>();
  check_combinations<bfloat16, bfloat16>();
}

}  // namespace
}  // namespace bloomery
