// What a model is: sizes and kinds, as its layers take them. Recomputation, dtype and parallel
// degrees are not in it. Each field is described once (models/describe.cpp): flags, the record in
// checkpoints, help and documentation come from there.
#pragma once

#include <any>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "nn/adapter_options.h"
#include "nn/moe_options.h"
#include "ops/activation/activation_kind.h"
#include "ops/norm/norm.h"
#include "ops/rotary/rotary_table.h"

namespace bloomery {

struct SelfAttentionOptions {
  std::int64_t num_heads = 0;
  std::int64_t num_groups = 0;                // key/value heads; 0: as many as heads
  std::int64_t head_dim = 0;                  // 0: hidden size / heads
  std::optional<bool> qkv_bias, output_bias;  // none: as the model's linear layers
  bool causal = true;
  std::optional<double> scale;  // of the scores; none: 1 / sqrt(head dim)
  std::int64_t window = 0;      // keys that a query sees, up to its own; 0: all
  // By layer: 1 where the window applies, 0 where all keys are seen. One number above 1: all but
  // every so-many-th layer. Empty: all layers.
  std::vector<std::int64_t> window_layers;
  bool head_norm = false;  // RMS norm of each query and key head
  float dropout = 0;       // of the probabilities

  std::int64_t window_of(std::int64_t layer) const {
    return window_layers.empty() || window_layers.at(layer) != 0 ? window : 0;
  }
};

// The function between the two products of an MLP. `automatic` is Megatron's: GELU by its tanh
// formula where that is fused with a bias, else by the error function. The gated ones multiply an
// activated half with another one.
enum class MlpKind : std::uint8_t {
  automatic,
  gelu_tanh,
  gelu_erf,
  silu,
  relu,
  squared_relu,
  swiglu,
  geglu_tanh,
  geglu_erf,
  reglu,
};

struct MlpOptions {
  std::int64_t ffn = 0;  // 0: 4 x hidden size, of a gated one 8/3 of it in multiples of 64
  MlpKind kind = MlpKind::automatic;
  bool bias_gelu_fusion = true;  // what `automatic` looks at
  std::optional<bool> bias;      // none: as the model's linear layers
  float dropout = 0;             // of what the second product multiplies

  Activation activation() const;
  bool gated() const { return kind >= MlpKind::swiglu; }
};

struct PositionOptions {
  bool learned = true;          // a table of positions; rotary ones take its place
  std::int64_t max_length = 0;  // rows of that table, and what the model was made for
  bool rotary = false;
  double rotary_fraction = 1;  // of a head's channels
  double rotary_base = 10000;
  bool rotary_interleaved = false;
  RotaryScaling scaling;
  // A bias of the scores by the distance of key and query, as in T5: rows of its table; 0: none.
  std::int64_t relative_buckets = 0;
  std::int64_t relative_distance = 128;  // from which on all share a row

  bool has_table() const { return learned && !rotary; }
  std::int64_t rotary_dim(std::int64_t head_dim) const {
    return static_cast<std::int64_t>(static_cast<double>(head_dim) * rotary_fraction);
  }
};

struct VocabularyOptions {
  std::int64_t size = 0;
  std::int64_t divisible_by = 128;  // rows held by a tensor rank are a multiple of it
  bool untied = false;              // the output has a matrix of its own
  bool scaled = false;              // embeddings are multiplied by sqrt(hidden size)
  double noise_alpha = 0;           // of noise on embeddings in training (NEFTune); 0: none
  bool padded_in_softmax = false;   // padding columns count, as in Megatron
};

struct ResidualOptions {
  bool parallel = false;    // attention and MLP read the same stream
  bool after_norm = false;  // the residual branches off after the norm
  bool fp32 = false;        // dtype of the stream
  float dropout = 0;        // of embeddings and branches
  // With after_norm: embeddings are dropped when the first norm has normalised them, not before.
  bool embedding_dropout_after_norm = false;
};

// Of models that read two segments of text (BERT).
struct SegmentOptions {
  bool binary_head = false;  // tells whether the segments were swapped
  // Rows of their table; none: 2 with a binary head or that of a task, else 0.
  std::optional<std::int64_t> token_types;
};

// What a task asks of a model that reads segments, in place of its own head: computed from the
// first token of each sequence.
enum class TaskHeadKind : std::uint8_t {
  none,
  classification,   // which of several classes
  regression,       // a number
  multiple_choice,  // which of the sequences of a sample
};
struct TaskHeadOptions {
  TaskHeadKind kind = TaskHeadKind::none;
  std::int64_t classes = 2;  // of a classification

  bool any() const { return kind != TaskHeadKind::none; }
  std::int64_t outputs() const { return kind == TaskHeadKind::classification ? classes : 1; }
};

struct InitOptions {
  double std = 0.02;
  bool xavier = false;  // instead: uniform by fan-in and fan-out of each weight
};

struct ModelOptions {
  std::string family = "gpt";
  std::int64_t num_layers = 0, hidden_size = 0;
  bool bias = true;  // of linear layers that do not say otherwise
  SelfAttentionOptions attention;
  MlpOptions mlp;
  MoeOptions moe;
  NormOptions norm;
  PositionOptions positions;
  VocabularyOptions vocabulary;
  ResidualOptions residual;
  SegmentOptions segments;
  TaskHeadOptions task;
  MlpKind head_activation = MlpKind::automatic;  // of a head that transforms its input (BERT)
  InitOptions init;
  AdapterOptions adapter;

  // The options that a family has for itself, made at first use.
  template <class T>
  T& own() {
    return extra.has_value() ? *std::any_cast<T>(&extra) : extra.emplace<T>();
  }
  template <class T>
  const T& own() const {
    return *std::any_cast<T>(&extra);
  }
  std::any extra;
};

// Sizes that were left to their defaults become numbers, `automatic` becomes a kind. What layers
// and records see is complete.
ModelOptions completed(ModelOptions options);

// The initial distribution of a weight with the given global fans. `ends_branch`: of the two
// products whose outputs are added to the stream, which start smaller.
Init weight_init(const ModelOptions& options, std::int64_t fan_in, std::int64_t fan_out,
                 bool ends_branch = false);

}  // namespace bloomery
