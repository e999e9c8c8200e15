// How a model and its training state are divided among ranks: a value that comes from the options.
// How the ranks are started is another matter.
#pragma once

#include <cstdint>

#include "comm/axes.h"

namespace bloomery {

struct MeshDegrees {
  int tensor = 1, context = 1, data = 1, pipeline = 1;
  int expert = 1;  // divides `data`
  int ring = 1;    // divides `context`; the rest of it is Ulysses'
  // Tensor ranks divide the tokens between the layers that they cut (parallel/sequence.h).
  bool sequence_parallel = false;
  int degree(Axis axis) const;
  int num_ranks() const { return tensor * context * data * pipeline; }
};

// What each of the ranks that hold the same parameters keeps a part of only: master weights and
// moments, summed gradients, values. ZeRO's stages 0 to 3 are none, the first, two and all.
struct Sharding {
  bool optimizer = false, gradients = false, values = false;
  static constexpr Sharding of_stage(int stage) { return {stage >= 1, stage >= 2, stage >= 3}; }
};

// In which order the stages of a pipeline work on their micro-batches (pipeline/schedule.h).
enum class PipelineSchedule : std::uint8_t { gpipe, one_forward_one_backward, zero_bubble };

struct Layout {
  MeshDegrees degrees;
  Sharding sharded;
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  int chunks = 1;  // of the model in each stage; several: 1F1B interleaves them
  // Of models with an encoder, the first stage of the decoder; 0: by the numbers of layers.
  int decoder_stage = 0;
};

}  // namespace bloomery
