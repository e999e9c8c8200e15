#include "ops/attention/attention_call.h"

#include <cmath>

#include "ops/dropout/dropout.h"

namespace bloomery {
namespace {

void check_places(const char* op, const AttentionPlaces& at, bool dropout) {
  const std::int64_t queries = at.num_sequences * at.query_length;
  for (const auto& [name, range] :
       {std::pair{"key_begin", &at.key_begin}, {"key_end", &at.key_end}}) {
    check(!*range || (range->dtype() == DType::int32 && range->numel() == queries), op, ": ", name,
          " is ", range->dtype(), range->shape(), ", expected ", queries, " of int32");
  }
  check(static_cast<bool>(at.key_begin) == static_cast<bool>(at.key_end), op,
        ": there must be both key_begin and key_end, or neither");
  check(!dropout || (at.samples && at.query_places), op,
        ": dropout while training needs batch.samples and batch.places, which say where each token "
        "stands in the data");
  const std::int64_t keys = at.num_sequences * at.key_length;
  check(at.key_length <= INT32_MAX, op, ": ", at.key_length,
        " keys per sequence do not fit 31 bits");
  check(!at.key_places || at.query_places, op, ": places of keys need places of queries");
  check(
      !at.key_places || (at.key_places.dtype() == DType::int32 &&
                         (at.key_places.numel() == at.key_length || at.key_places.numel() == keys)),
      op, ": the places of keys are ", at.key_places.dtype(), at.key_places.shape(), ", expected ",
      at.key_length, " or ", keys, " of int32");
}

// `heads` heads per group in a token of `buffer`, of which the first wanted is number `index`.
HeadView heads_of(const Tensor& buffer, const AttentionProblem& p, std::int64_t heads,
                  std::int64_t index) {
  const std::int64_t group_stride = heads * p.head_dim;
  return {.data = static_cast<char*>(buffer.data()) +
                  static_cast<std::size_t>(index * p.head_dim) * size_of(p.dtype),
          .token_stride = p.num_groups * group_stride,
          .group_stride = group_stride};
}

}  // namespace

void check_options(const char* op, const AttentionOptions& o) {
  check(o.num_heads > 0 && o.num_groups > 0 && o.head_dim > 0, op, ": ", o.num_heads, " heads in ",
        o.num_groups, " groups of head dimension ", o.head_dim, " must all be positive");
  check(o.num_heads % o.num_groups == 0, op, ": ", o.num_heads, " query heads cannot share ",
        o.num_groups, " key/value heads evenly; choose a number of groups that divides the heads");
  check(std::isfinite(o.scale) && o.scale > 0, op,
        ": the scale of the scores must be positive, not ", o.scale);
  check(o.window >= 0 && o.window <= INT32_MAX && (o.window == 0 || o.causal), op, ": a window of ",
        o.window, " keys; only causal attention has windows, of 1 to 2^31 - 1 keys, or 0 for none");
  check(o.dropout.probability >= 0 && o.dropout.probability < 1, op,
        ": the dropout probability must be in [0, 1), not ", o.dropout.probability);
  check(o.first_head >= 0 && o.first_head + o.num_heads <= 65536, op, ": heads ", o.first_head,
        " to ", o.first_head + o.num_heads, ", but at most 65536 can be told apart by dropout");
}

void check_rows(const char* op, const char* what, const Value& x, std::int64_t rows,
                std::int64_t width) {
  check(x.shape().rank() >= 2 && x.shape()[0] == rows && x.data.numel() == rows * width, op, ": ",
        what, " has shape ", x.shape(), ", expected ", rows, " tokens of ", width,
        " numbers (heads, groups and head dimension must be those of the projection before it)");
}

AttentionProblem attention_problem(const char* op, const Context& context,
                                   const AttentionPlaces& at, const AttentionOptions& o,
                                   DType dtype) {
  const std::uint32_t threshold = context.training ? dropout_threshold(o.dropout.probability) : 0;
  check_places(op, at, threshold > 0);
  AttentionProblem problem{
      .dtype = dtype,
      .num_sequences = at.num_sequences,
      .query_length = at.query_length,
      .key_length = at.key_length,
      .num_heads = o.num_heads,
      .num_groups = o.num_groups,
      .head_dim = o.head_dim,
      .scale = o.scale,
      .causal = o.causal,
      .window = !at.key_places && o.window >= at.key_length ? 0 : o.window,
      .key_begin = static_cast<const std::int32_t*>(at.key_begin.data()),
      .key_end = static_cast<const std::int32_t*>(at.key_end.data()),
      .dropout_threshold = threshold,
      .dropout_key = o.dropout.key,
      .first_head = o.first_head,
      .key_places = static_cast<const std::int32_t*>(at.key_places.data()),
      .key_place_per_token = at.key_places && at.key_places.numel() != at.key_length};
  if (threshold > 0 || at.key_places) {
    problem.places =
        token_places(op, at.samples, at.query_places, at.num_sequences, at.query_length);
  }
  return problem;
}

AttentionHeads heads_in(const Tensor& q, const Tensor& kv, const AttentionProblem& p) {
  const std::int64_t queries = p.heads_per_group();
  if (kv) {
    return {heads_of(q, p, queries, 0), heads_of(kv, p, 2, 0), heads_of(kv, p, 2, 1)};
  }
  return {heads_of(q, p, queries + 2, 0), heads_of(q, p, queries + 2, queries),
          heads_of(q, p, queries + 2, queries + 1)};
}

HeadView from_token(HeadView view, DType dtype, std::int64_t token) {
  view.data = static_cast<char*>(view.data) +
              token * view.token_stride * static_cast<std::int64_t>(size_of(dtype));
  return view;
}

}  // namespace bloomery
