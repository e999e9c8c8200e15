#include <cmath>

#include "ops/common/convert.h"
#include "ops/loss/half_loss.h"

namespace bloomery {
namespace {

float rounded(float x) { return static_cast<float>(float16(x)); }

float exponential(float16 x, float max) {
  return rounded(std::exp(rounded(static_cast<float>(x) - max)));
}

float mask_at(const ConstView& mask, std::int64_t row) {
  return mask ? mask.as<float>()[row] : 1.0f;
}

template <class Body>
void for_rows(Stream& stream, std::int64_t rows, Body&& body) {
  stream.device().pool().for_ranges(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      body(row);
    }
  });
}

void gradient_row(const LossGradient& k, std::int64_t row) {
  const std::int64_t columns = k.logits.columns(), valid = k.columns.num_valid;
  float16* const x = k.logits.as<float16>() + row * columns;
  const float scale = k.grad_scale ? *k.grad_scale.as<float>() : 1.0f;
  const float exact = mask_at(k.mask, row) * *k.inverse.as<float>() * scale;
  if (exact == 0.0f) {
    std::fill_n(x, columns, float16(0.0f));
    return;
  }
  const float weight = rounded(exact), max = k.max.as<float>()[row];
  const float sum = rounded(k.sum.as<float>()[row]);
  const std::int64_t label = k.columns.of(k.labels.as<std::int32_t>()[row]);
  for (std::int64_t c = 0; c < valid; ++c) {
    const float softmax = rounded(exponential(x[c], max) / sum);
    x[c] = float16((c == label ? rounded(softmax - 1) : softmax) * weight);
  }
  std::fill(x + valid, x + columns, float16(0.0f));
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const HalfLossSum& k) {
  const std::int64_t columns = k.logits.columns();
  for_rows(stream, k.logits.rows(), [&](std::int64_t row) {
    const float16* const x = k.logits.as<float16>() + row * columns;
    float sum = 0;
    for (std::int64_t c = 0; c < k.columns.num_valid; ++c) {
      sum += exponential(x[c], k.max.as<float>()[row]);
    }
    k.sum.as<float>()[row] = sum;
  });
}

template <>
void run(ThisCpu, Stream&, const HalfLossTokens& all) {
  const LossTokens& k = all.tokens;
  for (std::int64_t row = 0; row < k.losses.numel(); ++row) {
    const std::int64_t label = k.labels.as<std::int32_t>()[row];
    const bool known = label >= 0 && label < k.vocabulary;
    check(known || mask_at(k.mask, row) == 0.0f, "loss: label ", label,
          " is outside the vocabulary [0, ", k.vocabulary,
          ") and its loss mask is not zero; mask it or correct the data");
    const float distance = rounded(k.target.as<float>()[row] - k.max.as<float>()[row]);
    const float log_sum = rounded(std::log(rounded(k.sum.as<float>()[row])));
    k.losses.as<float>()[row] = known ? rounded(log_sum - distance) : 0.0f;
  }
}

template <>
void run(ThisCpu, Stream& stream, const HalfLossGradient& k) {
  for_rows(stream, k.gradient.logits.rows(),
           [&](std::int64_t row) { gradient_row(k.gradient, row); });
}

}  // namespace bloomery
