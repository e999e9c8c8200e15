// Elementwise activations and their gated forms (GeGLU, SwiGLU, ReGLU). A linear layer applies an
// activation in its own epilogue where it can; these are the stand-alone passes.
#pragma once

#include "autograd/context.h"
#include "device/launch.h"
#include "ops/activation/activation_kind.h"

namespace bloomery {

// y = f(x). Keeps x for the backward pass.
Value activation(Context& context, const Value& x, Activation activation);

// x: [tokens, 2, ffn] or [tokens, 2 * ffn], per token the gate, then the up projection.
// y = f(gate) * up, [tokens, ffn]. Keeps x.
Value gated_activation(Context& context, const Value& x, Activation activation);

struct ActivationForward {
  ConstView x;
  View y;
  Activation activation = Activation::none;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const ActivationForward&);
void run(OnCuda, Stream&, const ActivationForward&);

// grad_x (+)= grad_y * f'(x)
struct ActivationBackward {
  ConstView grad_y, x;
  View grad_x;
  Activation activation = Activation::none;
  bool add = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const ActivationBackward&);
void run(OnCuda, Stream&, const ActivationBackward&);

// y [tokens, ffn] = f(x[:, 0]) * x[:, 1], x of tokens * 2 * ffn elements.
struct GatedForward {
  ConstView x;
  View y;
  Activation activation = Activation::none;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const GatedForward&);
void run(OnCuda, Stream&, const GatedForward&);

// grad_x[:, 0] (+)= grad_y * x[:, 1] * f'(x[:, 0]);  grad_x[:, 1] (+)= grad_y * f(x[:, 0])
struct GatedBackward {
  ConstView grad_y, x;  // grad_y [tokens, ffn]
  View grad_x;
  Activation activation = Activation::none;
  bool add = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const GatedBackward&);
void run(OnCuda, Stream&, const GatedBackward&);

}  // namespace bloomery
