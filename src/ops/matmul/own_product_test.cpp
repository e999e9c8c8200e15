#include "ops/matmul/own_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "tensor/tensor.h"

namespace bloomery {
namespace {

// Small numbers whose products and sums are exact, so that results must be equal bit for bit.
template <class Real>
std::vector<Real> whole_numbers(const char* purpose, std::int64_t count) {
  std::vector<Real> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] =
        Real(static_cast<float>(std::floor(random_uniform(random_key(1, purpose), i) * 17) - 8));
  }
  return values;
}

using Multiply = void (*)(Stream&, const OwnProduct&);

// Compares with the definition: into c, or, without a c, as parts.
template <class In>
void expect_exact(Stream& stream, ProductShape s, bool into_c, Multiply multiply) {
  using Real = Accumulator<In>;
  s.input = dtype_of<In>;
  const std::int64_t rows_a = s.transpose_a ? s.k : s.m, rows_b = s.transpose_b ? s.n : s.k;
  const auto a = whole_numbers<In>("a", rows_a * s.lda);
  const auto b = whole_numbers<In>("b", rows_b * s.ldb);
  auto c = whole_numbers<Real>("c", s.m * s.ldc);
  auto expected = c;
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      Real& sum = expected[static_cast<std::size_t>(i * s.ldc + j)];
      sum = s.add ? sum : Real(0);
      for (std::int64_t k = 0; k < s.k; ++k) {
        sum += Real(a[static_cast<std::size_t>(s.transpose_a ? k * s.lda + i : i * s.lda + k)]) *
               Real(b[static_cast<std::size_t>(s.transpose_b ? j * s.ldb + k : k * s.ldb + j)]);
      }
    }
  }
  const std::vector<Real> beside = c;
  std::mutex mutex;
  std::int64_t num_finished = 0;
  const auto finished = [&](const OwnProduct::Part& part) {
    const std::lock_guard lock(mutex);
    num_finished += part.rows * part.columns;
    for (std::int64_t r = 0; r < (into_c ? 0 : part.rows); ++r) {
      std::copy_n(static_cast<const Real*>(part.c) + r * part.ldc, part.columns,
                  c.begin() + (part.i + r) * s.ldc + part.j);
    }
  };
  multiply(stream, OwnProduct{.shape = s,
                              .a = a.data(),
                              .b = b.data(),
                              .c = into_c ? c.data() : nullptr,
                              .block_rows = 61,
                              .block_columns = 160,
                              .finished = finished,
                              .beside = into_c ? beside.data() : nullptr});
  EXPECT_EQ(num_finished, s.m * s.n);
  EXPECT_EQ(c, expected) << s.input << ' ' << s.m << 'x' << s.n << 'x' << s.k << " transposes "
                         << s.transpose_a << s.transpose_b << " add " << s.add;
}

struct Sizes {
  std::int64_t m, n, k;
};

// All transposes, in rows that are longer than the matrix: what lies beyond must stay.
template <class In>
void expect_exact_of_size(Stream& stream, const Sizes& sizes, Multiply multiply) {
  for (int bits = 0; bits < 16; ++bits) {
    const bool ta = (bits & 1) != 0, tb = (bits & 2) != 0, into_c = (bits & 8) != 0;
    const ProductShape shape{.m = sizes.m,
                             .n = sizes.n,
                             .k = sizes.k,
                             .lda = (ta ? sizes.m : sizes.k) + 3,
                             .ldb = (tb ? sizes.k : sizes.n) + 1,
                             .ldc = sizes.n + 2,
                             .transpose_a = ta,
                             .transpose_b = tb,
                             .add = into_c && (bits & 4) != 0};
    expect_exact<In>(stream, shape, into_c, multiply);
  }
}

// Every shape that is smaller, equal or larger than strips, panels and blocks; every height of a
// strip of rows.
void expect_exact_everywhere(Multiply multiply) {
  Device device({.num_threads = 2, .poison = true});
  Stream stream(device);
  for (const Sizes& sizes :
       {Sizes{1, 1, 1}, Sizes{3, 5, 7}, Sizes{14, 32, 384}, Sizes{13, 33, 385}, Sizes{12, 31, 383},
        Sizes{61, 160, 16}, Sizes{70, 170, 20}, Sizes{16, 40, 770}, Sizes{9, 20, 640},
        Sizes{5, 600, 40}, Sizes{2, 3, 0}, Sizes{0, 4, 5}, Sizes{4, 0, 5}}) {
    expect_exact_of_size<float>(stream, sizes, multiply);
    expect_exact_of_size<double>(stream, sizes, multiply);
    expect_exact_of_size<bfloat16>(stream, sizes, multiply);
    expect_exact_of_size<float16>(stream, sizes, multiply);
  }
  for (std::int64_t m = 1; m < 30; ++m) {
    expect_exact_of_size<float>(stream, {m, 40, 20}, multiply);
  }
  expect_exact_of_size<float>(stream, {3, 4300, 2}, multiply);  // more than a slab of b
}

template <int kLevel>
void multiply_at(Stream& stream, const OwnProduct& product) {
  run(OnCpu<kLevel>{}, stream, product);
}

TEST(OwnProduct, IsExactOnEveryInstructionSetOfThisMachine) {
  expect_exact_everywhere(multiply_at<0>);
  if constexpr (build::num_cpu_levels > 1) {
    if (cpu_level() >= 1) {
      expect_exact_everywhere(multiply_at<1>);
    }
    if (cpu_level() >= 2) {
      expect_exact_everywhere(multiply_at<2>);
    }
    if (cpu_level() >= 3) {
      expect_exact_everywhere(multiply_at<3>);
    }
  }
}

}  // namespace
}  // namespace bloomery
