// The second half of a low-rank product beside a linear layer (LoRA): y += scale h b^T.
#pragma once

#include "autograd/context.h"
#include "device/launch.h"
#include "ops/low_rank/row_parts.h"

namespace bloomery {

// y [tokens, rows], in place. b is [rows.., rank]; h [tokens, places * rank] has for each place the
// input times a first factor of its own, and a row of b multiplies the one of its part. y is the
// output of the layer, without activation, and nobody has read it yet. Keeps h.
//   dL/dh = scale g b,  dL/db = scale g^T h, each row in the columns of its place.
void low_rank_add(Context& context, const Value& y, const Value& h, Parameter& b,
                  const RowParts& parts, float scale);

// wide[row, place(row) * rank + j] = scale * b[row, j], all else zero.
struct SpreadRows {
  ConstView b;  // [rows.., rank]
  View wide;    // [rows, num_places * rank], of the same dtype
  RowParts parts;
  float scale = 1;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const SpreadRows&);
void run(OnCuda, Stream&, const SpreadRows&);

// b[row, j] (+)= scale * wide[row, place(row) * rank + j], or zero where a row has no place.
struct CollectRows {
  ConstView wide;
  View b;
  RowParts parts;
  float scale = 1;
  bool add = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const CollectRows&);
void run(OnCuda, Stream&, const CollectRows&);

}  // namespace bloomery
