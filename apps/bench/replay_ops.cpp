// How the products and the attention of a step are launched once more: bare, and on operands of
// their own.
#include "apps/bench/replay.h"
#include "ops/fp8/quantize.h"

namespace bloomery {
namespace {

Tensor random_operand(BenchSetup& setup, const ConstView& like, Fp8Format format,
                      const Tensor& scale) {
  if (format == Fp8Format::none) {
    return setup.in(like.dtype, like.shape);
  }
  const Shape shape{like.rows(), like.columns()};
  const Tensor bytes = setup.out(DType::uint8, shape);
  BenchSetup numbers(setup.stream, DType::bf16);
  const Tensor x = numbers.in(shape);
  launch(setup.stream, Quantize{.x = x, .format = format, .scale = scale, .rows = bytes});
  return bytes;
}

std::string text_of(const Matmul& p, const MatmulSizes& sizes) {
  const std::string inputs =
      p.a_code ? concat(p.a_code.format, " ", p.b_code.format) : concat(p.a.dtype);
  return concat(sizes.m, "x", sizes.n, "x", sizes.k, " ", p.transpose_a ? "t" : "n",
                p.transpose_b ? "t" : "n", " ", inputs, " to ", p.d.dtype, p.add ? ", added" : "");
}

std::function<void()> bare_product(BenchSetup& setup, const Matmul& p, const MatmulSizes& sizes) {
  const Tensor scale = setup.keep(Tensor::from_host<float>(setup.stream, {1}, {1}));
  const Tensor a = random_operand(setup, p.a, p.a_code.format, scale);
  const Tensor b = random_operand(setup, p.b, p.b_code.format, scale);
  const Tensor d = setup.out(p.d.dtype, p.d.shape);
  Matmul bare{.a = a,
              .b = b,
              .d = d,
              .m = sizes.m,
              .n = sizes.n,
              .k = sizes.k,
              .transpose_a = p.transpose_a,
              .transpose_b = p.transpose_b,
              .add = p.add,
              .fast_sums = p.fast_sums};
  if (p.a_code) {
    bare.a_code = {p.a_code.format, scale};
    bare.b_code = {p.b_code.format, scale};
  }
  return launching(setup, bare, {a, b, d, scale});
}

std::string text_of(const AttentionProblem& p, const char* pass) {
  return concat(pass, " ", p.num_sequences, "x", p.query_length, "x", p.key_length, ", ",
                p.num_heads, " heads of ", p.head_dim, ", ", p.num_groups, " groups, ", p.dtype,
                p.causal ? ", causal" : "");
}

// The same without what points to memory: documents and dropout.
AttentionProblem bare(const AttentionProblem& p) {
  return {.dtype = p.dtype,
          .num_sequences = p.num_sequences,
          .query_length = p.query_length,
          .key_length = p.key_length,
          .num_heads = p.num_heads,
          .num_groups = p.num_groups,
          .head_dim = p.head_dim,
          .scale = p.scale,
          .causal = p.causal};
}

// Heads with the strides of `like`, in a buffer of their own.
HeadView heads(BenchSetup& setup, const AttentionProblem& p, std::int64_t length,
               const HeadView& like) {
  const Tensor buffer = setup.in(p.dtype, {p.num_sequences * length, like.token_stride});
  return {buffer.data(), like.token_stride, like.group_stride};
}

AttentionForward bare_forward(BenchSetup& setup, const AttentionProblem& recorded,
                              const HeadView& q, const HeadView& k, const HeadView& v) {
  const AttentionProblem p = bare(recorded);
  const std::int64_t queries = p.num_sequences * p.query_length;
  return {.problem = p,
          .q = heads(setup, p, p.query_length, q),
          .k = heads(setup, p, p.key_length, k),
          .v = heads(setup, p, p.key_length, v),
          .out = setup.out(p.dtype, {queries, p.num_heads * p.head_dim}),
          .lse = setup.out(accumulation_dtype(p.dtype),
                           {p.num_sequences, p.num_heads, p.query_length})};
}

std::function<void()> launching_attention(BenchSetup& setup, const AttentionForward& recorded) {
  return launching(setup, bare_forward(setup, recorded.problem, recorded.q, recorded.k, recorded.v),
                   {});
}

std::function<void()> launching_attention(BenchSetup& setup, const AttentionBackward& recorded) {
  const AttentionForward forward =
      bare_forward(setup, recorded.problem, recorded.q, recorded.k, recorded.v);
  launch(setup.stream, forward);
  const AttentionProblem& p = forward.problem;
  return launching(setup,
                   AttentionBackward{.problem = p,
                                     .q = forward.q,
                                     .k = forward.k,
                                     .v = forward.v,
                                     .out = forward.out,
                                     .lse = forward.lse,
                                     .grad_out = setup.in(p.dtype, forward.out.shape),
                                     .grad_q = heads(setup, p, p.query_length, recorded.grad_q),
                                     .grad_k = heads(setup, p, p.key_length, recorded.grad_k),
                                     .grad_v = heads(setup, p, p.key_length, recorded.grad_v)},
                   {});
}

}  // namespace

void add_products(Replay& replay, const StepWork& work) {
  for (const auto& [product, row] : work.products) {
    const MatmulSizes sizes = checked_sizes(product);
    replay.add(text_of(product, sizes), flops(product), row,
               [&](BenchSetup& setup) { return bare_product(setup, product, sizes); });
  }
}

void add_attention(Replay& replay, const StepWork& work) {
  const auto add = [&](const auto& launches, const char* pass) {
    for (const auto& [kernel, row] : launches) {
      replay.add(text_of(kernel.problem, pass), 0, row,
                 [&](BenchSetup& setup) { return launching_attention(setup, kernel); });
    }
  };
  add(work.forward, "forward");
  add(work.backward, "backward");
}

}  // namespace bloomery
