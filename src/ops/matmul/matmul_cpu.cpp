#include <algorithm>
#include <vector>

#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/fp8/quantize.h"
#include "ops/matmul/amx.h"
#include "ops/matmul/cpu_plans.h"
#include "ops/matmul/epilogue_cpu.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/own_product.h"

namespace bloomery {
namespace {

// One product: how its blocks are computed and finished.
template <class In, class Out>
class BlockedProduct {
 public:
  using Sum = Accumulator<In>;

  BlockedProduct(Stream& stream, const Matmul& matmul, const MatmulSizes& sizes,
                 const CpuMatmulPlan& plan)
      : stream_(stream),
        p_(matmul),
        sizes_(sizes),
        epilogue_(matmul, sizes.n),
        plan_(plan),
        onednn_(stream.device().service<CpuMatmulPlans>().onednn()),
        lda_(matmul.transpose_a ? sizes.m : sizes.k),
        ldb_(matmul.transpose_b ? sizes.k : sizes.n) {}

  void run() {
    if constexpr (std::is_same_v<In, bfloat16>) {
      if (plan_.method == CpuMethod::amx && sizes_.k > 0) {
        const AmxProduct product(
            stream_, {sizes_.m, sizes_.n, sizes_.k, plan_.block_rows, plan_.block_columns},
            {a_at(0, 0), lda_, p_.transpose_a}, {b_at(0, 0), ldb_, p_.transpose_b});
        return for_blocks([&](const Block& block) { compute(product, block); });
      }
    }
    if (plan_.method == CpuMethod::packed) {
      return run_own();
    }
    for_blocks([&](const Block& block) { compute(block); });
  }

 private:
  // Into d where its dtype is that of sums, finished there while in L2.
  void run_own() {
    OwnProduct product{.shape = shape_of({0, 0, sizes_.m, sizes_.n}, sizes_.n, false),
                       .a = p_.a.data,
                       .b = p_.b.data,
                       .c = nullptr,
                       .block_rows = plan_.block_rows,
                       .block_columns = plan_.block_columns,
                       .finished = {}};
    if constexpr (std::is_same_v<Out, Sum>) {
      product.c = p_.d.data;
      product.shape.add = p_.add;
      product.beside = p_.derivative_at ? p_.derivative_at.data : p_.before.data;
    }
    if (product.c == nullptr || has_epilogue(p_)) {
      product.finished = [this](const OwnProduct::Part& part) {
        epilogue_.finish({part.i, part.j, part.rows, part.columns}, static_cast<Sum*>(part.c),
                         part.ldc);
      };
    }
    launch_cpu(stream_, product);
  }

  template <class Body>
  void for_blocks(const Body& body) {
    const std::int64_t row_blocks = (sizes_.m + plan_.block_rows - 1) / plan_.block_rows;
    const std::int64_t column_blocks = (sizes_.n + plan_.block_columns - 1) / plan_.block_columns;
    stream_.device().pool().for_each(row_blocks * column_blocks, [&](std::int64_t index) {
      const std::int64_t i = index % row_blocks * plan_.block_rows;
      const std::int64_t j = index / row_blocks * plan_.block_columns;
      body(Block{i, j, std::min(plan_.block_rows, sizes_.m - i),
                 std::min(plan_.block_columns, sizes_.n - j)});
    });
  }

  void compute(const AmxProduct& product, const Block& block) {
    if constexpr (std::is_same_v<Out, float>) {
      if (!has_epilogue(p_) && product.goes_straight_into_c()) {
        return product.block_into(block.i, block.j, p_.add,
                                  p_.d.template as<float>() + block.i * sizes_.n + block.j,
                                  sizes_.n);
      }
    }
    const ConstView beside = p_.derivative_at ? p_.derivative_at : ConstView(p_.before);
    product.block(block.i, block.j,
                  [&](std::int64_t row, std::int64_t rows, float* c, std::int64_t ldc) {
                    epilogue_.finish({row, block.j, rows, block.columns}, c, ldc);
                  },
                  {{{p_.d.data, sizeof(Out)}, {beside.data, sizeof(Out)}}});
  }

  // Straight into d where nothing follows and the library can write its dtype, else into a tile
  // that is finished while in L2.
  void compute(const Block& block) {
    if constexpr (std::is_same_v<Out, Sum>) {
      if (!has_epilogue(p_)) {
        return multiply(block, p_.d.template as<Sum>() + block.i * sizes_.n + block.j, sizes_.n,
                        p_.add);
      }
    }
    if (multiply_to_bf16(block)) {
      return;
    }
    const Tensor tile = Tensor::empty(stream_, dtype_of<Sum>, {block.rows, block.columns});
    multiply(block, static_cast<Sum*>(tile.data()), block.columns, false);
    epilogue_.finish(block, static_cast<Sum*>(tile.data()), block.columns);
  }

  bool multiply_to_bf16(const Block& block) {
    if constexpr (std::is_same_v<In, bfloat16> && std::is_same_v<Out, bfloat16>) {
      if (plan_.method == CpuMethod::onednn_bf16 && !has_epilogue(p_) && !p_.add && sizes_.k > 0) {
        ProductShape shape = shape_of(block, sizes_.n, false);
        shape.output = DType::bf16;
        return onednn_->multiply(stream_, shape, a_at(block.i, 0), b_at(0, block.j),
                                 p_.d.template as<Out>() + block.i * sizes_.n + block.j);
      }
    }
    return false;
  }

  ProductShape shape_of(const Block& block, std::int64_t ldc, bool add) const {
    return {.m = block.rows,
            .n = block.columns,
            .k = sizes_.k,
            .lda = lda_,
            .ldb = ldb_,
            .ldc = ldc,
            .transpose_a = p_.transpose_a,
            .transpose_b = p_.transpose_b,
            .add = add,
            .input = p_.a.dtype};
  }

  const In* a_at(std::int64_t i, std::int64_t k) const {
    return p_.a.template as<In>() + (p_.transpose_a ? k * lda_ + i : i * lda_ + k);
  }
  const In* b_at(std::int64_t k, std::int64_t j) const {
    return p_.b.template as<In>() + (p_.transpose_b ? j * ldb_ + k : k * ldb_ + j);
  }

  void multiply(const Block& block, Sum* c, std::int64_t ldc, bool add) {
    const ProductShape shape = shape_of(block, ldc, add);
    if (sizes_.k == 0) {
      for (std::int64_t r = 0; r < (add ? 0 : block.rows); ++r) {
        std::fill_n(c + r * ldc, block.columns, Sum(0));
      }
    } else if (!multiply_by_onednn(shape, a_at(block.i, 0), b_at(0, block.j), c)) {
      launch_cpu(stream_, OwnProduct{.shape = shape,
                                     .a = a_at(block.i, 0),
                                     .b = b_at(0, block.j),
                                     .c = c,
                                     .block_rows = block.rows,
                                     .block_columns = block.columns,
                                     .finished = {}});
    }
  }

  // False when oneDNN cannot.
  bool multiply_by_onednn(const ProductShape& shape, const In* a, const In* b, Sum* c) {
    if constexpr (!std::is_same_v<In, double>) {
      return onednn_->multiply(stream_, shape, a, b, c);
    }
    return false;
  }

  Stream& stream_;
  const Matmul& p_;
  const MatmulSizes& sizes_;
  const Epilogue<In, Out> epilogue_;
  const CpuMatmulPlan plan_;
  OneDnn* const onednn_;
  const std::int64_t lda_, ldb_;
};

void multiply(Stream& stream, const Matmul& k, const MatmulSizes& sizes,
              const CpuMatmulPlan& plan) {
  dispatch_floating(k.a.dtype, [&](auto tag) {
    using In = typename decltype(tag)::type;
    if (k.d.dtype == k.a.dtype) {
      BlockedProduct<In, In>(stream, k, sizes, plan).run();
    } else {
      BlockedProduct<In, Accumulator<In>>(stream, k, sizes, plan).run();
    }
  });
}

void multiply_by_plan(Stream& stream, const Matmul& k, const MatmulSizes& sizes) {
  const MatmulKey key{.m = sizes.m,
                      .n = sizes.n,
                      .k = sizes.k,
                      .transpose_a = k.transpose_a,
                      .transpose_b = k.transpose_b,
                      .add = k.add,
                      .input = k.a.dtype,
                      .output = k.d.dtype};
  CpuMatmulPlans& plans = stream.device().service<CpuMatmulPlans>();
  if (k.ragged) {
    return multiply(stream, k, sizes, plans.by_rule(key));
  }
  const auto trial = [&](const CpuMatmulPlan& candidate) {
    const Tensor scratch = Tensor::empty(stream, k.d.dtype, {sizes.m, sizes.n});
    Matmul product = k;
    product.d = scratch;
    product.before = {};
    multiply(stream, product, sizes, candidate);
  };
  multiply(stream, k, sizes, plans.plan(key, trial));
}

Tensor decoded(Stream& stream, const ConstView& bytes, const Fp8Code& code) {
  Tensor numbers = Tensor::empty(stream, DType::fp32, bytes.shape);
  launch_cpu(
      stream,
      Dequantize{
          .x = bytes, .format = code.format, .inverse_scale = code.inverse_scale, .y = numbers});
  return numbers;
}

// The same product of operands decoded to fp32, which gives fp32 where d may be narrower.
void multiply_fp8(Stream& stream, const Matmul& k) {
  const Tensor a = decoded(stream, k.a, k.a_code), b = decoded(stream, k.b, k.b_code);
  const auto widened = [&](const ConstView& narrow) {
    Tensor wide = narrow ? Tensor::empty(stream, DType::fp32, narrow.shape) : Tensor();
    if (narrow) {
      launch_cpu(stream, ScaleAdd{.x = narrow, .y = wide});
    }
    return wide;
  };
  const Tensor bias = widened(k.bias), derivative_at = widened(k.derivative_at);
  const Tensor d = k.add ? widened(k.d) : Tensor::empty(stream, DType::fp32, k.d.shape);
  const Tensor before = k.before ? Tensor::empty(stream, DType::fp32, k.before.shape) : Tensor();
  Matmul wide = k;
  wide.a_code = wide.b_code = {};
  wide.column_sums = wide.activated = {};
  wide.a = a;
  wide.b = b;
  wide.d = d;
  wide.bias = bias;
  wide.before = before;
  wide.derivative_at = derivative_at;
  launch_cpu(stream, wide);
  launch_cpu(stream, ScaleAdd{.x = d, .y = k.d});
  if (before) {
    launch_cpu(stream, ScaleAdd{.x = before, .y = k.before});
  }
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const Matmul& k) {
  const MatmulSizes sizes = checked_sizes(k);
  if (k.a_code) {
    multiply_fp8(stream, k);
  } else if (sizes.m > 0 && sizes.n > 0) {
    multiply_by_plan(stream, k, sizes);
  }
  if (k.activated) {
    bloomery::run(
        ThisCpu{}, stream,
        ActivationForward{.x = k.derivative_at, .y = k.activated, .activation = k.derivative});
  }
  if (k.column_sums) {
    ConstView d = k.d;
    d.shape = {sizes.m, sizes.n};
    bloomery::run(ThisCpu{}, stream, ColumnSum{.x = d, .sums = k.column_sums});
  }
}

}  // namespace bloomery
