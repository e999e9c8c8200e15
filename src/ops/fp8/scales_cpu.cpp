#include <algorithm>
#include <cmath>

#include "ops/fp8/scales.h"

namespace bloomery {

template <>
void run(ThisCpu, Stream&, const ScaleOfAmax& k) {
  const float scale = scale_of(*k.amax.as<float>(), k.largest, 1, 1);
  *k.scale.as<float>() = scale;
  *k.inverse_scale.as<float>() = 1 / scale;
}

template <>
void run(ThisCpu, Stream&, const UpdateScales& k) {
  const std::int64_t length = k.rows.columns();
  for (std::int64_t i = 0; i < k.rows.rows(); ++i) {
    float* const row = k.rows.as<float>() + i * length;
    float* const history = row + ScaleRow::kHistory;
    std::copy_backward(history, row + length - 1, row + length);
    float& amax = k.amax.as<float>()[i];
    *history = std::isfinite(amax) ? amax : 0;
    amax = 0;
    row[ScaleRow::kAge] += 1;
    if (row[ScaleRow::kAge] >= k.interval) {
      row[ScaleRow::kAge] = 0;
      const float seen = k.most_recent ? *history : *std::max_element(history, row + length);
      row[ScaleRow::kScale] =
          scale_of(seen, k.largest.as<float>()[i], k.margin_factor, row[ScaleRow::kScale]);
    }
    k.inverse.as<float>()[i * k.inverse.columns()] = 1 / row[ScaleRow::kScale];
  }
}

}  // namespace bloomery
