// Rotary position embedding: pairs of channels of query and key heads turn by position * frequency.
#pragma once

#include "autograd/context.h"
#include "device/launch.h"
#include "ops/rotary/rotary_table.h"

namespace bloomery {

struct RotaryOptions {
  std::int64_t num_groups = 1;       // key/value heads held here
  std::int64_t heads_per_group = 1;  // query heads of each
  std::int64_t head_dim = 2;
  std::int64_t dim = 0;      // the first `dim` channels of a head turn; 0: all
  double base = 10000;       // pair i has the frequency base^(-2i / dim), before scaling
  bool interleaved = false;  // pairs (2i, 2i + 1), else (i, i + dim / 2)
  RotaryScaling scaling;
  std::int64_t length = 0;  // of whole sequences, for dynamic scaling; 0: that of the batch
};

// qkv: [tokens, num_groups, heads_per_group + 2, head_dim] as attention reads it. Turns the query
// and key heads, not the value heads, by the positions of the batch. The data is changed in place
// (what made qkv must not need it for its own backward) and so is the gradient.
Value rotary(Context& context, const Value& qkv, const RotaryOptions& options);

// x: [tokens, num_groups * heads_per_group, head_dim], all heads turn. In place as well.
Value rotary_heads(Context& context, const Value& x, const RotaryOptions& options);

// Turns, in every group of `heads` heads, the first `turned` heads.
struct Rotary {
  View data;            // [num_tokens, num_groups, heads, head_dim]
  ConstView positions;  // int32 [num_tokens]
  std::int64_t num_tokens = 0, num_groups = 1, heads = 1, turned = 1, head_dim = 2;
  bool interleaved = false;
  bool inverse = false;  // by the opposite angle
  RotaryTable table;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const Rotary&);
void run(OnCuda, Stream&, const Rotary&);

}  // namespace bloomery
