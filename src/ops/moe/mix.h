// Two branches of a mixture in weights that a small linear layer found: of a residual mixture
// (softmax of two logits) and of a shared expert (logistic function of one).
#pragma once

#include "autograd/context.h"
#include "device/launch.h"

namespace bloomery {

enum class MixKind : std::uint8_t {
  softmax,   // y = c0 a + c1 b, c the softmax of logits [tokens, 2]
  logistic,  // y = a + s b, s the logistic function of logits [tokens, 1]
};

// a, b and y are [tokens, columns], all of one dtype. Keeps a, b and the logits.
Value mix(Context& context, const Value& a, const Value& b, const Value& logits, MixKind kind);

struct MixForward {
  ConstView a, b, logits;
  View y;
  MixKind kind = MixKind::softmax;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const MixForward&);
void run(OnCuda, Stream&, const MixForward&);

struct MixBackward {
  ConstView grad, a, b, logits;
  View grad_a, grad_b, grad_logits;
  bool add_a = false, add_b = false, add_logits = false;
  MixKind kind = MixKind::softmax;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const MixBackward&);
void run(OnCuda, Stream&, const MixBackward&);

}  // namespace bloomery
