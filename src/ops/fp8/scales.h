// Scales of tensors in 8 bits, from the largest numbers seen in them. Everything stays on the
// device.
#pragma once

#include <limits>

#include "device/launch.h"
#include "ops/fp8/fp8_format.h"
#include "tensor/tensor.h"

namespace bloomery {

// The scale that brings `amax` to 2^-margin of the largest number of a format; `old` where amax is
// zero or no number. The same on every device.
constexpr float scale_of(float amax, float largest, float margin_factor, float old) {
  constexpr float kMost = std::numeric_limits<float>::max();
  if (!(amax > 0 && amax <= kMost)) {
    return old;
  }
  const float scale = largest / amax * margin_factor;
  return scale <= kMost ? scale : kMost;
}

// Current scaling: the scale for a tensor of which amax is known; 1 where it is zero or no number.
struct ScaleOfAmax {
  ConstView amax;             // fp32 [1]
  View scale, inverse_scale;  // fp32 [1]
  float largest = 0;          // of the format
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const ScaleOfAmax&);
void run(OnCuda, Stream&, const ScaleOfAmax&);

// Delayed scaling: what is known of a tensor is a row of numbers.
struct ScaleRow {
  static constexpr std::int64_t kScale = 0;    // of the next step
  static constexpr std::int64_t kAge = 1;      // steps since it was computed
  static constexpr std::int64_t kHistory = 2;  // the amaxes of the last steps, latest first
  static constexpr std::int64_t length(std::int64_t history) { return kHistory + history; }
};

// A step has ended: its amaxes enter the histories, and every `interval` steps the scale of a
// tensor is computed from the latest or the largest of its history (Transformer Engine's rule). An
// amax that is no number enters as zero.
struct UpdateScales {
  View amax;                // fp32 [tensors]; zero afterwards
  View rows;                // fp32 [tensors, ScaleRow::length(history)]
  View inverse;             // fp32 [tensors, n]: of the scales, in the first of a row
  ConstView largest;        // fp32 [tensors]: of their formats
  float margin_factor = 1;  // 2^-margin
  float interval = 1;
  bool most_recent = true;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const UpdateScales&);
void run(OnCuda, Stream&, const UpdateScales&);

}  // namespace bloomery
