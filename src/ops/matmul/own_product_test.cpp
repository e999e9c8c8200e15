#include "ops/matmul/own_product.h"

#include <gtest/gtest.h>

#include <cmath>
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
    values[i] = static_cast<Real>(std::floor(random_uniform(random_key(1, purpose), i) * 17) - 8);
  }
  return values;
}

template <class Real>
void expect_exact(Stream& stream, ProductShape s, void (*multiply)(Stream&, const OwnProduct&)) {
  s.input = s.output = dtype_of<Real>;
  const std::int64_t rows_a = s.transpose_a ? s.k : s.m, rows_b = s.transpose_b ? s.n : s.k;
  const auto a = whole_numbers<Real>("a", rows_a * s.lda);
  const auto b = whole_numbers<Real>("b", rows_b * s.ldb);
  auto c = whole_numbers<Real>("c", s.m * s.ldc);
  auto expected = c;
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      Real& sum = expected[static_cast<std::size_t>(i * s.ldc + j)];
      sum = s.add ? sum : Real(0);
      for (std::int64_t k = 0; k < s.k; ++k) {
        sum += a[static_cast<std::size_t>(s.transpose_a ? k * s.lda + i : i * s.lda + k)] *
               b[static_cast<std::size_t>(s.transpose_b ? j * s.ldb + k : k * s.ldb + j)];
      }
    }
  }
  multiply(stream, OwnProduct{s, a.data(), b.data(), c.data()});
  EXPECT_EQ(c, expected) << s.input << ' ' << s.m << 'x' << s.n << 'x' << s.k << " transposes "
                         << s.transpose_a << s.transpose_b << " add " << s.add;
}

// Every shape that is smaller, equal or larger than registers and tiles, in rows that are longer
// than the matrix: what lies beyond must stay.
void expect_exact_everywhere(void (*multiply)(Stream&, const OwnProduct&)) {
  Device device;
  Stream stream(device);
  struct Sizes {
    std::int64_t m, n, k;
  };
  for (const auto& [m, n, k] :
       {Sizes{1, 1, 1}, Sizes{3, 5, 7}, Sizes{6, 64, 128}, Sizes{13, 130, 129},
        Sizes{192, 256, 128}, Sizes{193, 257, 257}, Sizes{200, 16, 300}, Sizes{5, 600, 40}}) {
    for (int bits = 0; bits < 8; ++bits) {
      const bool ta = (bits & 1) != 0, tb = (bits & 2) != 0;
      const ProductShape shape{.m = m,
                               .n = n,
                               .k = k,
                               .lda = (ta ? m : k) + 3,
                               .ldb = (tb ? k : n) + 1,
                               .ldc = n + 2,
                               .transpose_a = ta,
                               .transpose_b = tb,
                               .add = (bits & 4) != 0};
      expect_exact<float>(stream, shape, multiply);
      expect_exact<double>(stream, shape, multiply);
    }
  }
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
  }
}

}  // namespace
}  // namespace bloomery
