// Tokens to the rows of their experts and back: the two ends of a mixture.
#pragma once

#include "ops/moe/routing.h"

namespace bloomery {

// x [tokens, columns] to the experts' rows [dispatch.groups.rows, columns].
Value permute(Context& context, const Value& x, const Dispatch& dispatch);

// y[t] = sum over choices j of gates[t, j] * rows[place of (t, j)], in the dtype of the rows;
// summed in the accumulation dtype. Keeps the rows.
Value combine(Context& context, const Value& rows, const Value& gates, const Dispatch& dispatch);

// Row i of the result is row from[i] of x, or zero where that is negative; `to` says the reverse.
Value move_rows(Context& context, const Value& x, const Tensor& from, const Tensor& to);

// y[i] = factor of index[i] * x[index[i] / per_row], zero where the index is negative.
struct GatherRows {
  ConstView x;
  ConstView index;    // int32 [rows of y]
  ConstView factors;  // accumulation dtype, by index; null: one
  View y;
  std::int64_t per_row = 1;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const GatherRows&);
void run(OnCuda, Stream&, const GatherRows&);

// y[t] (+)= sum over j of weights[t, j] * x[index[t, j]], without those of negative index.
struct SumRows {
  ConstView x;
  ConstView index;    // int32 [tokens, choices]
  ConstView weights;  // accumulation dtype [tokens, choices]; null: ones
  View y;
  bool add = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const SumRows&);
void run(OnCuda, Stream&, const SumRows&);

// y[t, j] (+)= a[t] . b[index[t, j]], zero where the index is negative.
struct RowDots {
  ConstView a, b;
  ConstView index;  // int32 [tokens, choices]
  View y;           // accumulation dtype
  bool add = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const RowDots&);
void run(OnCuda, Stream&, const RowDots&);

}  // namespace bloomery
