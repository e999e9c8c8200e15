// Layer norm and RMS norm, fused with the residual addition before them, and that addition alone.
//
// The norm is computed from the sum after it was rounded to the stream's dtype, so that settling
// first and normalising later changes no bit. Statistics are kept in the accumulation dtype.
#pragma once

#include "autograd/context.h"
#include "autograd/rematerialize.h"
#include "device/launch.h"
#include "ops/dropout/dropout.h"

namespace bloomery {

enum class NormKind : std::uint8_t { layer, rms };

struct NormOptions {
  NormKind kind = NormKind::layer;
  float epsilon = 1e-5f;
  bool one_plus_gain = false;  // multiply by 1 + gain: weight decay then pulls towards the identity
};

struct NormResult {
  Value stream;                 // stream + dropout(pending)
  Value y;                      // norm(stream), in the dtype of the gain
  Rematerialize rematerialize;  // of y, where cheap values are made again (ActivationPolicy)
};

// One pass over stream and pending [tokens, channels]. Without `pending` the stream is returned as
// it came. The stream may be fp32 where pending, gain and bias are bf16 or fp16.
//   layer: y = (x - mean(x)) / sqrt(var(x) + epsilon) * gain + bias
//   rms:   y = x / sqrt(mean(x^2) + epsilon) * gain + bias
// Gain and bias are [channels]; bias may be null.
NormResult add_norm(Context& context, const Value& stream, const Value& pending, Parameter& gain,
                    Parameter* bias, const NormOptions& options,
                    const DropoutOptions& dropout = {});

// stream + dropout(pending), as pipeline and recompute boundaries need it: bits equal to what
// add_norm stores. Without `pending` the stream itself.
Value add_pending(Context& context, const Value& stream, const Value& pending,
                  const DropoutOptions& dropout = {});

// out = round(stream + mask * scale * pending).
struct Settle {
  ConstView stream, pending;
  View out;
  DropoutMask mask;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const Settle&);
void run(OnCuda, Stream&, const Settle&);

// x = round(stream + mask * scale * pending), y = norm(x). Without pending, x is the stream and
// `out` null.
struct NormForward {
  NormOptions options;
  ConstView stream, pending, gain, bias;
  View out, y;
  View statistics;  // [rows, 2] mean and inverse deviation, or [rows, 1] inverse rms; may be null
  DropoutMask mask;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const NormForward&);
void run(OnCuda, Stream&, const NormForward&);

// With n columns, r the inverse deviation (or rms), h = (x - mean) * r (rms: x * r) and
// g = dy * gain (or dy * (1 + gain)), per row:
//   dx = r * (g - sum(g) / n - h * sum(g * h) / n)      (rms: without the sum(g) term)
//   total = dx + later
//   d_stream (+)= total,  d_pending (+)= mask * scale * total
// and, as sums over blocks of rows, partials[.][0] = sum of dy * h, partials[.][1] = sum of dy.
// `later` (the gradient of x from its other uses) may be the buffer of d_stream; `later`, d_stream
// and d_pending may be null.
struct NormBackward {
  NormOptions options;
  ConstView dy, x, gain, statistics, later;
  View d_stream, d_pending;
  bool add_stream = false, add_pending = false;
  DropoutMask mask;
  View partials;  // [num_norm_partials, 2 or (no bias) 1, columns], in the accumulation dtype
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const NormBackward&);
void run(OnCuda, Stream&, const NormBackward&);

// d_gain (+)= sum over the first dimension of partials[.][0], d_bias (+)= of partials[.][1].
struct NormParameterGradient {
  ConstView partials;
  View d_gain, d_bias;  // d_bias is null without bias
  bool add_gain = false, add_bias = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const NormParameterGradient&);
void run(OnCuda, Stream&, const NormParameterGradient&);

// Number of partial sums of the parameter gradients: a function of the shape alone. On a GPU it
// is the number of blocks, which stay resident and each take every so-many-th row.
std::int64_t num_norm_partials(std::int64_t rows, std::int64_t columns);

}  // namespace bloomery
