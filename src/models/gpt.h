// GPT: options, block, list of blocks. With its options it is also Llama-shaped (rotary positions,
// RMS norm, gated MLP, grouped queries, untied output).
#pragma once

#include "comm/mesh.h"
#include "nn/attention.h"
#include "nn/block.h"
#include "nn/head.h"
#include "nn/mlp.h"
#include "nn/norm.h"
#include "parallel/vocab_embedding.h"

namespace bloomery {

struct GptOptions {
  int num_layers = 12;
  std::int64_t hidden_size = 768;
  std::int64_t num_heads = 12;
  std::int64_t num_key_value_heads = 0;  // 0: as many as heads
  std::int64_t head_dim = 0;             // 0: hidden_size / num_heads
  std::int64_t ffn_hidden_size = 0;      // 0: four times hidden_size
  std::int64_t vocabulary = 50257;
  std::int64_t make_vocabulary_divisible_by = 128;
  std::int64_t max_positions = 1024;
  NormOptions norm;
  Activation activation = Activation::gelu_tanh;
  bool gated = false;
  bool bias = true;
  bool tied = true;
  PositionKind positions = PositionKind::learned;
  double rotary_fraction = 1, rotary_base = 10000;
  bool rotary_interleaved = false;
  bool post_norm_residual = false;  // the residual branches off after the norm
  bool fp32_residual = false;
  bool padded_vocabulary_in_softmax = false;
  float attention_dropout = 0, hidden_dropout = 0;
  double init_std = 0.02;
  bool xavier_init = false;
  RecomputeOptions recompute;
};

// All impossible combinations at once, one line each; empty when the model can be built.
std::vector<std::string> problems(const GptOptions& options, const MeshDegrees& mesh);

class Gpt {
 public:
  // `dtype` is what activations and parameters are computed in.
  Gpt(const GptOptions& options, const Mesh& mesh, DType dtype);

  // Mean loss of the context's batch. With a tape, backward of that tape gives all gradients.
  HeadLoss loss(Context& context) const;
  // [tokens, columns held here], or those of the tokens `rows` (int32) only, without a tape.
  Value logits(Context& context, const Tensor& rows = {}) const;

  // Each distinct parameter once, in model order, with `uses` set.
  ParameterList parameters();
  const GptOptions& options() const { return options_; }
  std::int64_t num_parameters();  // of the whole model, padding not counted

 private:
  State body(Context& context) const;

  GptOptions options_;
  std::unique_ptr<VocabEmbedding> embedding_;
  std::string embedding_dropout_ = "embedding dropout";
  DType stream_dtype_;
  Blocks blocks_;
  std::unique_ptr<Head> head_;
};

}  // namespace bloomery
