#include "ops/matmul/matmul.h"

#include <algorithm>

namespace bloomery {
namespace {

bool fits(const ConstView& view, DType dtype, std::int64_t count) {
  return !view || (view.dtype == dtype && view.numel() == count);
}

void check_operands(const Matmul& p) {
  if (p.a_code || p.b_code) {
    check(p.a_code && p.b_code && p.a.dtype == DType::uint8 && p.b.dtype == DType::uint8 &&
              p.a_code.inverse_scale && p.b_code.inverse_scale && is_floating(p.d.dtype),
          "matmul: operands of 8 bits are both uint8 with a code, not ", p.a.dtype, " and ",
          p.b.dtype);
    check(!p.transpose_a && p.transpose_b,
          "matmul: of operands of 8 bits b is transposed and a is not");
    return;
  }
  check(is_floating(p.a.dtype) && p.a.dtype == p.b.dtype &&
            (p.d.dtype == p.a.dtype || p.d.dtype == accumulation_dtype(p.a.dtype)),
        "matmul: cannot multiply ", p.a.dtype, " by ", p.b.dtype, " into ", p.d.dtype,
        ": a and b need one dtype, d that one or ", accumulation_dtype(p.a.dtype));
}

}  // namespace

MatmulSizes checked_sizes(const Matmul& p) {
  const MatmulSizes sizes{p.m > 0 ? p.m : (p.transpose_a ? p.a.columns() : p.a.rows()),
                          p.n > 0 ? p.n : (p.transpose_b ? p.b.rows() : p.b.columns()),
                          p.k > 0 ? p.k : (p.transpose_a ? p.a.rows() : p.a.columns())};
  const auto [m, n, k] = sizes;
  check(p.a.numel() == m * k && p.b.numel() == k * n && p.d.numel() == m * n, "matmul: a ",
        p.a.shape, p.transpose_a ? " transposed" : "", " and b ", p.b.shape,
        p.transpose_b ? " transposed" : "", " do not make d ", p.d.shape, ": sizes are m ", m,
        ", n ", n, ", k ", k);
  check_operands(p);
  const DType dtype = p.a_code ? p.d.dtype : p.a.dtype;
  check(fits(p.bias, dtype, n), "matmul: the bias must be ", dtype, " [", n, "], not ",
        p.bias.dtype, p.bias.shape);
  check(fits(p.before, p.d.dtype, m * n) && fits(p.derivative_at, p.d.dtype, m * n),
        "matmul: `before` and `derivative_at` must look like d, ", p.d.dtype, p.d.shape);
  check(!p.before || p.activation != Activation::none,
        "matmul: `before` is what an activation is applied to, and there is none");
  check(p.derivative == Activation::none || p.derivative_at,
        "matmul: a derivative needs the point at which to take it");
  check(!(p.add && has_epilogue(p)) &&
            !(p.derivative != Activation::none && (p.bias || p.activation != Activation::none)),
        "matmul: forward epilogue, backward epilogue and add exclude each other");
  check(fits(p.activated, p.d.dtype, m * n) && (!p.activated || p.derivative != Activation::none),
        "matmul: `activated` comes with a derivative and must look like d, ", p.d.dtype, p.d.shape);
  check(!p.column_sums || (p.derivative != Activation::none && p.column_sums.columns() == n &&
                           p.column_sums.dtype == accumulation_dtype(dtype)),
        "matmul: column sums come with a derivative, in ", accumulation_dtype(dtype), " [parts, ",
        n, "]");
  return sizes;
}

std::int64_t num_column_sum_parts(const Stream& stream, std::int64_t m, std::int64_t n) {
  // On a GPU about half a million sums at a time fill it; a part has rows for eight warps.
  constexpr std::int64_t kSums = std::int64_t{1} << 19, kLeastRows = 32, kMost = 2048;
  if (stream.device().rules() != DeviceKind::cuda) {
    return 1;
  }
  return std::clamp<std::int64_t>(
      (m + kLeastRows - 1) / kLeastRows, 1,
      std::clamp<std::int64_t>(kSums / std::max<std::int64_t>(n, 1), 1, kMost));
}

double flops(const Matmul& matmul) {
  const auto [m, n, k] = checked_sizes(matmul);
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

}  // namespace bloomery
