// What calls of attention kernels have in common: options checked, a problem made of them and of
// places, and where the heads lie in what the projections left.
#pragma once

#include "ops/attention/attention.h"

namespace bloomery {

void check_options(const char* op, const AttentionOptions& options);

// Checks that x has `rows` tokens of `width` numbers.
void check_rows(const char* op, const char* what, const Value& x, std::int64_t rows,
                std::int64_t width);

// Reads tensors of `places`, which must stay; without bias.
AttentionProblem attention_problem(const char* op, const Context& context,
                                   const AttentionPlaces& places, const AttentionOptions& options,
                                   DType dtype);

struct AttentionHeads {
  HeadView q, k, v;
};
// All three lie in `q`, or keys and values in `kv`, if there is one.
AttentionHeads heads_in(const Tensor& q, const Tensor& kv, const AttentionProblem& problem);

// `view` from another token on.
HeadView from_token(HeadView view, DType dtype, std::int64_t token);

}  // namespace bloomery
