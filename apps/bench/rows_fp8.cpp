// Rows of linear layers in 8 bits: the casts, and the products of what they made.
#include "apps/bench/rows.h"
#include "ops/fp8/quantize.h"
#include "ops/matmul/matmul.h"

namespace bloomery {
namespace {

Tensor one(BenchSetup& setup) {
  return setup.keep(Tensor::from_host<float>(setup.stream, {1}, {1}));
}

BenchRow cast_row(std::int64_t rows, std::int64_t columns, Fp8Format format) {
  return {concat("fp8 cast ", format), shape_text({rows, columns}), [=](BenchSetup& setup) {
            const Tensor x = setup.in({rows, columns});
            const Tensor by_rows = setup.out(DType::uint8, {rows, columns});
            const Tensor by_columns = setup.out(DType::uint8, {columns, rows});
            return launching(setup,
                             Quantize{.x = x,
                                      .format = format,
                                      .scale = one(setup),
                                      .rows = by_rows,
                                      .transposed = by_columns,
                                      .amax = one(setup)},
                             {x, by_rows, by_columns});
          }};
}

struct Operand {
  Tensor bytes;
  Fp8Code code;
};
Operand operand(BenchSetup& setup, std::int64_t rows, std::int64_t k, Fp8Format format) {
  const Tensor scale = one(setup), numbers = setup.keep(setup.in({rows, k}));
  setup.bytes -= static_cast<double>(numbers.bytes());  // read here, not by the row
  const Tensor bytes = setup.out(DType::uint8, {rows, k});
  launch(setup.stream, Quantize{.x = numbers, .format = format, .scale = scale, .rows = bytes});
  return {bytes, {format, scale}};
}

struct ProductRow {
  std::string name;
  std::int64_t m, n, k;
  Fp8Format of_a;
  DType output;
  bool add, fast;
};
BenchRow product_row(const ProductRow& row) {
  return {row.name, shape_text({row.m, row.n, row.k}), [row](BenchSetup& setup) {
            setup.flops = 2.0 * static_cast<double>(row.m * row.n * row.k);
            const Operand a = operand(setup, row.m, row.k, row.of_a);
            const Operand b = operand(setup, row.n, row.k, Fp8Format::e4m3);
            const Tensor d = row.add ? setup.updated(row.output, {row.m, row.n})
                                     : setup.out(row.output, {row.m, row.n});
            return launching(setup,
                             Matmul{.a = a.bytes,
                                    .b = b.bytes,
                                    .d = d,
                                    .transpose_b = true,
                                    .add = row.add,
                                    .a_code = a.code,
                                    .b_code = b.code,
                                    .fast_sums = row.fast},
                             {a.bytes, b.bytes, d});
          }};
}

void add_linear(std::vector<BenchRow>& rows, const std::string& name, DType dtype,
                std::int64_t tokens, std::int64_t in, std::int64_t out) {
  using enum Fp8Format;
  rows.push_back(product_row({name, tokens, out, in, e4m3, dtype, false, true}));
  rows.push_back(
      product_row({name + " input gradient", tokens, in, out, e5m2, dtype, false, false}));
  rows.push_back(
      product_row({name + " weight gradient", out, in, tokens, e5m2, DType::fp32, true, false}));
}

bool fits(std::int64_t extent) { return extent % kFp8Multiple == 0; }

}  // namespace

std::vector<BenchRow> fp8_rows(const BenchShapes& shapes) {
  const std::int64_t tokens = shapes.tokens(), hidden = shapes.hidden, ffn = shapes.ffn();
  std::vector<BenchRow> rows;
  if (fits(tokens) && fits(hidden)) {
    rows = {cast_row(tokens, hidden, Fp8Format::e4m3), cast_row(tokens, ffn, Fp8Format::e5m2)};
    add_linear(rows, "fp8 qkv", DType::bf16, tokens, hidden, 3 * hidden);
    add_linear(rows, "fp8 mlp up", DType::bf16, tokens, hidden, ffn);
    add_linear(rows, "fp8 mlp down", DType::bf16, tokens, ffn, hidden);
  }
  return rows;
}

}  // namespace bloomery
