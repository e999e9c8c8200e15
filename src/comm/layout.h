// How a model and its training state are divided among ranks: a value that comes from the options.
// How the ranks are started is another matter.
#pragma once

#include "comm/axes.h"

namespace bloomery {

struct MeshDegrees {
  int tensor = 1, context = 1, data = 1, pipeline = 1;
  int expert = 1;  // divides `data`
  int degree(Axis axis) const;
  int num_ranks() const { return tensor * context * data * pipeline; }
};

// What each of the ranks that hold the same parameters keeps a part of only: master weights and
// moments, summed gradients, values. ZeRO's stages 0 to 3 are none, the first, two and all.
struct Sharding {
  bool optimizer = false, gradients = false, values = false;
  static constexpr Sharding of_stage(int stage) { return {stage >= 1, stage >= 2, stage >= 3}; }
};

struct Layout {
  MeshDegrees degrees;
  Sharding sharded;
  // Of a pipeline: gradients of weights are computed later than those of inputs, which fills time
  // that stages would wait (Megatron-DeepSpeed's --enable-zbh1-pipeline).
  bool zero_bubble = false;
};

}  // namespace bloomery
