// Rows of the ops that carry most of a step: products, attention, vocabulary, optimizer.
#include <algorithm>
#include <cmath>

#include "apps/bench/rows.h"
#include "ops/attention/attention.h"
#include "ops/embedding/embedding.h"
#include "ops/loss/loss.h"
#include "ops/matmul/matmul.h"
#include "ops/optimizer/gradient_norm.h"
#include "ops/optimizer/update.h"
#include "ops/rotary/rotary.h"

namespace bloomery {
namespace {

// The three products of a linear layer of `inputs` to `outputs` channels over the tokens.
std::vector<BenchRow> linear_rows(const std::string& name, std::int64_t tokens, std::int64_t inputs,
                                  std::int64_t outputs) {
  const double flops = 2.0 * static_cast<double>(tokens * inputs * outputs);
  const std::string text = shape_text({tokens, outputs, inputs});
  const Shape weight_shape{outputs, inputs};
  return {
      {name, text,
       [=](BenchSetup& setup) {
         setup.flops = flops;
         const Tensor x = setup.in({tokens, inputs}), weight = setup.in(weight_shape, 0.02f);
         const Tensor bias = setup.in({outputs}), y = setup.out({tokens, outputs});
         return launching(setup,
                          Matmul{.a = x, .b = weight, .d = y, .transpose_b = true, .bias = bias},
                          {x, weight, bias, y});
       }},
      {name + " input gradient", text,
       [=](BenchSetup& setup) {
         setup.flops = flops;
         const Tensor dy = setup.in({tokens, outputs}), weight = setup.in(weight_shape, 0.02f);
         const Tensor dx = setup.out({tokens, inputs});
         return launching(setup, Matmul{.a = dy, .b = weight, .d = dx}, {dy, weight, dx});
       }},
      {name + " weight gradient", text,
       [=](BenchSetup& setup) {
         setup.flops = flops;
         const Tensor dy = setup.in({tokens, outputs}, 1e-3f), x = setup.in({tokens, inputs});
         const Tensor dw = setup.updated(DType::fp32, weight_shape);
         return launching(setup, Matmul{.a = dy, .b = x, .d = dw, .transpose_a = true, .add = true},
                          {dy, x, dw});
       }},
  };
}

// Q, K and V inside the fused buffer [tokens, heads, 3, head_dim].
struct FusedHeads {
  FusedHeads(const Tensor& buffer, std::int64_t heads, std::int64_t head_dim)
      : q(head(buffer, 0, heads, head_dim)),
        k(head(buffer, 1, heads, head_dim)),
        v(head(buffer, 2, heads, head_dim)) {}
  static HeadView head(const Tensor& buffer, std::int64_t which, std::int64_t heads,
                       std::int64_t head_dim) {
    const auto skipped = static_cast<std::size_t>(which * head_dim) * size_of(buffer.dtype());
    return {static_cast<char*>(buffer.data()) + skipped, heads * 3 * head_dim, 3 * head_dim};
  }
  HeadView q, k, v;
};

AttentionProblem causal_problem(const BenchShapes& shapes, DType dtype) {
  const std::int64_t head_dim = shapes.hidden / shapes.heads;
  return {.dtype = dtype,
          .num_sequences = shapes.micro_batch,
          .query_length = shapes.sequence,
          .key_length = shapes.sequence,
          .num_heads = shapes.heads,
          .num_groups = shapes.heads,
          .head_dim = head_dim,
          .scale = 1 / std::sqrt(static_cast<float>(head_dim)),
          .causal = true};
}

// Operations of one causal product of scores: half the matrix is masked.
double causal_flops(const BenchShapes& shapes) {
  return static_cast<double>(shapes.tokens() * shapes.sequence * shapes.hidden);
}

// Turning the queries and keys of the fused buffer in place: two thirds of it are read and written.
BenchRow rotary_row(const BenchShapes& shapes) {
  const std::int64_t tokens = shapes.tokens(), heads = shapes.heads;
  const std::int64_t head_dim = shapes.hidden / heads;
  return {"rotary", shape_text({tokens, heads, 3, head_dim}), [=](BenchSetup& setup) {
            const Tensor qkv = setup.in({tokens, heads, 3, head_dim});
            setup.bytes *= 2.0 * 2 / 3;
            const Tensor positions = setup.integers({tokens}, shapes.sequence);
            const std::int64_t turned = std::min(head_dim, 2 * kMaxRotaryPairs);
            const Rotary kernel{.data = qkv,
                                .positions = positions,
                                .num_tokens = tokens,
                                .num_groups = heads,
                                .heads = 3,
                                .turned = 2,
                                .head_dim = head_dim,
                                .table = make_rotary_table(10000, turned, {}, shapes.sequence)};
            return launching(setup, kernel, {qkv, positions});
          }};
}

}  // namespace

std::vector<BenchRow> product_rows(const BenchShapes& shapes) {
  std::vector<BenchRow> rows;
  const std::int64_t hidden = shapes.hidden;
  for (const auto& [name, inputs, outputs] : {std::tuple{"linear qkv", hidden, 3 * hidden},
                                              {"linear proj", hidden, hidden},
                                              {"linear up", hidden, shapes.ffn()},
                                              {"linear down", shapes.ffn(), hidden}}) {
    for (BenchRow& row : linear_rows(name, shapes.tokens(), inputs, outputs)) {
      rows.push_back(std::move(row));
    }
  }
  const Shape wide{shapes.tokens(), shapes.ffn()};
  rows.push_back({"column sum", shape_text({wide[0], wide[1]}), [=](BenchSetup& setup) {
                    const Tensor x = setup.in(wide), sums = setup.out(DType::fp32, {wide[1]});
                    return launching(setup, ColumnSum{.x = x, .sums = sums}, {x, sums});
                  }});
  return rows;
}

std::vector<BenchRow> attention_rows(const BenchShapes& shapes) {
  const std::int64_t tokens = shapes.tokens(), hidden = shapes.hidden, heads = shapes.heads;
  const std::int64_t head_dim = hidden / heads;
  const Shape fused{tokens, heads, 3, head_dim};
  const std::string text = shape_text({shapes.micro_batch, heads, shapes.sequence, head_dim});
  return {
      rotary_row(shapes),
      {"attention", text,
       [=](BenchSetup& setup) {
         setup.flops = 2 * causal_flops(shapes);
         const Tensor qkv = setup.in(fused), out = setup.out({tokens, hidden});
         const Tensor lse = setup.out(DType::fp32, {shapes.micro_batch, heads, shapes.sequence});
         const FusedHeads x(qkv, heads, head_dim);
         return launching(setup,
                          AttentionForward{.problem = causal_problem(shapes, setup.dtype),
                                           .q = x.q,
                                           .k = x.k,
                                           .v = x.v,
                                           .out = out,
                                           .lse = lse},
                          {qkv, out, lse});
       }},
      {"attention backward", text,
       [=](BenchSetup& setup) {
         setup.flops = 5 * causal_flops(shapes);
         const Tensor qkv = setup.in(fused), out = setup.in({tokens, hidden});
         const Tensor lse = setup.out(DType::fp32, {shapes.micro_batch, heads, shapes.sequence});
         const Tensor grad_out = setup.in({tokens, hidden}), grad_qkv = setup.out(fused);
         const FusedHeads x(qkv, heads, head_dim), dx(grad_qkv, heads, head_dim);
         const AttentionProblem problem = causal_problem(shapes, setup.dtype);
         launch(setup.stream,
                AttentionForward{
                    .problem = problem, .q = x.q, .k = x.k, .v = x.v, .out = out, .lse = lse});
         return launching(setup,
                          AttentionBackward{.problem = problem,
                                            .q = x.q,
                                            .k = x.k,
                                            .v = x.v,
                                            .out = out,
                                            .lse = lse,
                                            .grad_out = grad_out,
                                            .grad_q = dx.q,
                                            .grad_k = dx.k,
                                            .grad_v = dx.v},
                          {qkv, out, lse, grad_out, grad_qkv});
       }},
  };
}

namespace {

// Statistics, losses and gradient of the cross-entropy of one chunk of the head: the logits are
// read twice and written once.
BenchRow loss_row(const BenchShapes& shapes) {
  constexpr std::int64_t kChunk = 1024;
  const std::int64_t vocabulary = shapes.vocabulary;
  return {"cross entropy", shape_text({kChunk, vocabulary}),
          [=](BenchSetup& setup) -> std::function<void()> {
            const Tensor logits = setup.in({kChunk, vocabulary});
            setup.bytes *= 3;
            const Tensor labels = setup.integers({kChunk}, vocabulary);
            const Tensor statistics = setup.updated(DType::fp32, {5, kChunk});
            const auto line = [&](std::int64_t i) {
              return statistics.slice(i, i + 1).reshape({kChunk});
            };
            const Tensor inverse = setup.keep(Tensor::from_host<float>(setup.stream, {1.0f}, {1}));
            const LossColumns columns{.num_valid = vocabulary};
            const LossStatistics gather{.logits = logits,
                                        .labels = labels,
                                        .columns = columns,
                                        .local_max = line(0),
                                        .max = line(1),
                                        .sum = line(2),
                                        .target = line(3)};
            const LossTokens tokens{.max = line(1),
                                    .sum = line(2),
                                    .target = line(3),
                                    .labels = labels,
                                    .vocabulary = vocabulary,
                                    .losses = line(4)};
            const LossGradient gradient{.logits = logits,
                                        .labels = labels,
                                        .columns = columns,
                                        .max = line(1),
                                        .sum = line(2),
                                        .inverse = inverse};
            return [=, &stream = setup.stream] {
              launch(stream, gather);
              launch(stream, tokens);
              launch(stream, gradient);
            };
          }};
}

}  // namespace

std::vector<BenchRow> vocabulary_rows(const BenchShapes& shapes) {
  const std::int64_t tokens = shapes.tokens(), vocabulary = shapes.vocabulary;
  const Shape table_shape{vocabulary, shapes.hidden}, shape{tokens, shapes.hidden};
  const std::string text = shape_text({tokens, shapes.hidden});
  return {
      {"embedding", text,
       [=](BenchSetup& setup) {
         const Tensor table = setup.in(table_shape, 0.02f);
         setup.bytes = 0;  // of the table only the chosen rows are read
         const Tensor ids = setup.integers({tokens}, vocabulary),
                      y = setup.updated(setup.dtype, shape);
         return launching(
             setup,
             EmbeddingForward{.table = table, .tokens = {.ids = ids, .limit = vocabulary}, .y = y},
             {table, ids, y});
       }},
      {"embedding backward", text,
       [=](BenchSetup& setup) {
         const Tensor grad_y = setup.in(shape), ids = setup.integers({tokens}, vocabulary);
         const Tensor grad_table = setup.out(DType::fp32, table_shape);
         return launching(setup,
                          EmbeddingBackward{.grad_y = grad_y,
                                            .rows = {.ids = ids, .limit = vocabulary},
                                            .grad_table = grad_table},
                          {grad_y, ids, grad_table});
       }},
      loss_row(shapes),
  };
}

std::vector<BenchRow> optimizer_rows(const BenchShapes& shapes) {
  // As many elements as the embedding table: far larger than the caches.
  const std::int64_t count = shapes.vocabulary * shapes.hidden / kUnitSize * kUnitSize;
  const Shape flat{count};
  return {
      {"adamw", std::to_string(count),
       [=](BenchSetup& setup) {
         const Tensor grad = setup.in(DType::fp32, flat);
         const bool halves = setup.dtype == DType::bf16;
         const WeightForm form = halves                       ? WeightForm::split
                                 : setup.dtype != DType::fp32 ? WeightForm::master
                                                              : WeightForm::exact;
         const Tensor master = halves ? Tensor{} : setup.updated(DType::fp32, flat);
         const Tensor low =
             halves ? setup.updated(DType::uint8, {kLowHalfBytes * count}) : Tensor{};
         const Tensor moment1 = setup.updated(DType::fp32, flat);
         const Tensor moment2 = setup.updated(DType::fp32, flat);
         const Tensor flags = setup.out(DType::uint8, {num_units(count)});
         const Tensor value = halves                       ? setup.updated(DType::bf16, flat)
                              : setup.dtype != DType::fp32 ? setup.out(flat)
                                                           : Tensor{};
         const Tensor scalars =
             setup.keep(Tensor::empty(setup.stream, DType::uint8, {sizeof(UpdateScalars)}));
         const UpdateScalars chosen{.step_size = 1e-4};
         setup.stream.copy(scalars.data(), &chosen, sizeof(chosen));
         setup.stream.synchronize();
         return launching(setup,
                          Update{.buffers = {.grad = grad,
                                             .form = form,
                                             .master = master,
                                             .value = value,
                                             .low = low,
                                             .state = {moment1, moment2},
                                             .unit_flags = flags},
                                 .rule = Adam{},
                                 .scalars = static_cast<const UpdateScalars*>(scalars.data())},
                          {grad, master, value, low, moment1, moment2, flags, scalars});
       }},
      {"gradient norm", std::to_string(count),
       [=](BenchSetup& setup) {
         const Tensor grad = setup.in(DType::fp32, flat);
         const Tensor flags = setup.out(DType::uint8, {num_units(count)});
         const Tensor partials = setup.out(DType::fp64, {num_norm_partials(count)});
         return launching(
             setup, SquaredNormPartials{.grad = grad, .unit_flags = flags, .partials = partials},
             {grad, flags, partials});
       }},
  };
}

}  // namespace bloomery
