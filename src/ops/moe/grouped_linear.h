// Linear layers of many experts at once: each group of rows has a weight of its own. How many rows
// a group has is known on the device alone; on CUDA nothing waits for it.
#pragma once

#include "ops/activation/activation_kind.h"
#include "ops/moe/routing.h"

namespace bloomery {

struct GroupedLinearOptions {
  Activation activation = Activation::none;
  bool add_bias = true;  // false: its gradient is computed all the same (see LinearOptions)
};

// y[rows of e] = f(x[rows of e] weight[e]^T + bias[e]): x [rows, in], weight [groups, out.., in],
// bias of groups * out elements or null; y [rows, out]. Backward as of linear (ops/linear). Rows
// past the last group are neither read nor written, in any of the products.
Value grouped_linear(Context& context, const Value& x, Parameter& weight, Parameter* bias,
                     const RowGroups& groups, const GroupedLinearOptions& options = {});

// Groups as kernels see them.
struct GroupViews {
  ConstView offsets, tiles;
};

// Of each group e: d = epilogue(a op(b[e])), rows of e. op(b[e]) is [k, n]; stored like that, or
// [n, k] where transpose_b. The epilogues are those of Matmul.
struct GroupedProduct {
  ConstView a, b;  // [rows, k]; [groups, ..]
  View d;          // [rows, n]
  std::int64_t n = 0, k = 0;
  bool transpose_b = false;
  GroupViews groups;
  ConstView bias;  // [groups, n], or null
  Activation activation = Activation::none;
  View before;  // [rows, n], or null
  Activation derivative = Activation::none;
  ConstView derivative_at;  // [rows, n]
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const GroupedProduct&);
void run(OnCuda, Stream&, const GroupedProduct&);
double flops(const GroupedProduct& k);

// Of each group e: d[e] [m, n] (+)= a[rows of e]^T b[rows of e], in the accumulation dtype.
struct GroupedWeightGradient {
  ConstView a, b;  // [rows, m], [rows, n]
  View d;
  GroupViews groups;
  bool add = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const GroupedWeightGradient&);
void run(OnCuda, Stream&, const GroupedWeightGradient&);
double flops(const GroupedWeightGradient& k);

// sums[e] (+)= column sums of the rows of e, in the accumulation dtype; deterministic.
struct GroupedColumnSum {
  ConstView x;  // [rows, n]
  View sums;    // [groups, n]
  GroupViews groups;
  bool add = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const GroupedColumnSum&);
void run(OnCuda, Stream&, const GroupedColumnSum&);

// The tensor cores of sm_90a; false where they cannot run this.
bool grouped_run_sm90(Stream& stream, const GroupedProduct& k);
bool grouped_run_sm90(Stream& stream, const GroupedWeightGradient& k);

}  // namespace bloomery
