// What a run has switched on: how a pass is computed, beyond what its layers and its batch say.
#pragma once

namespace bloomery {

class Fp8Layers;           // ops/fp8
class FakeQuantLayers;     // parallel
class InputsOnHost;        // autograd
struct Distillation;       // parallel
struct LayerDropping;      // nn
struct PreferenceOptions;  // ops/loss
struct SequenceChunks;     // parallel
struct TokenDropping;      // nn

// What ops keep for the backward pass.
struct ActivationPolicy {
  // Outputs of activation functions and norms are not kept for backward but computed again, by one
  // pass over what is kept (--recompute-activations).
  bool remake_cheap_values = false;
};

// Owned by whoever runs the passes (a rank, a loaded model), read-only for layers and ops. What is
// pointed to outlives the backward pass. Null: off. Features that keep something between passes
// (scales, ranges, copies) are no pointers to const.
struct Features {
  ActivationPolicy activations;
  Fp8Layers* fp8 = nullptr;                      // linear layers that multiply 8 bits
  FakeQuantLayers* fake_quantization = nullptr;  // linear layers that round weights and inputs
  TokenDropping* token_dropping = nullptr;       // random-LTD
  const LayerDropping* layer_dropping = nullptr;
  const SequenceChunks* sequence_chunks = nullptr;  // layers compute sequences chunk by chunk
  InputsOnHost* inputs_on_host = nullptr;           // of recomputed segments
  const PreferenceOptions* preference = nullptr;    // heads learn from pairs instead of labels
  const Distillation* distillation = nullptr;       // heads learn from a teacher besides labels
};

}  // namespace bloomery
