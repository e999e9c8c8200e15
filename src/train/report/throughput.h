// How fast an iteration was, by the formulas of the programs whose figures people compare with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nn/model_options.h"

namespace bloomery {

enum class Recomputation { none, selective, full };

// What the formulas need to know of a model.
struct ModelShape {
  std::int64_t layers = 0, width = 0, heads = 0, kv_heads = 0;
  std::int64_t ffn_width = 0;
  std::int64_t padded_vocabulary = 0;
  bool gated = false;               // SwiGLU: three matrices instead of two
  std::int64_t active_experts = 1;  // per token
  std::int64_t head_dim = 0;        // 0: width / heads
  bool causal = true;
  // What a token passes of all layers' MLPs and experts; 0: in each layer the active experts.
  std::int64_t all_ffn_widths = 0;
  // Of a decoder behind these layers, which are then its encoder's: its layers see all of the
  // encoder's output, and logits are of its tokens alone. Its MLPs are as the encoder's.
  std::int64_t decoder_layers = 0, decoder_length = 0;
};

// All but the decoder.
ModelShape model_shape(const ModelOptions& completed, std::int64_t padded_vocabulary);

// Operations of one iteration over `batch` sequences of `length` tokens.
//
// Megatron-DeepSpeed's count: multiplications of all matrices, forward once and backward twice,
// attention as if it were not causal, and the work of recomputation on top. Keys and values of
// grouped queries count floor(2 / group) of the width squared, which is 0 for groups above 2, and
// every layer counts as one with experts. It knows no decoder behind an encoder: that is counted
// here by the same rules.
double deepspeed_flops(const ModelShape& shape, std::int64_t batch, std::int64_t length,
                       Recomputation recomputation);
// Megatron-LM's count: the operations of the model alone. Causal attention counts half, grouped
// keys and values, heads and experts count what they are, recomputation counts nothing. The
// numerator of MFU.
double model_flops(const ModelShape& shape, std::int64_t batch, std::int64_t length);

// The most floating-point operations a second of a device, dense, in the dtype, as its data sheet
// says; none for unknown devices.
std::optional<double> peak_flops(const std::string& device, DType dtype);

struct Throughput {
  double samples_per_second = 0;
  double tokens_per_second = 0;
  double tokens_per_gpu_per_second = 0;
  double tflops = 0;        // per device, by deepspeed_flops
  double model_tflops = 0;  // per device, by model_flops
};
Throughput throughput(const ModelShape& shape, std::int64_t batch, std::int64_t length,
                      Recomputation recomputation, double seconds_per_iteration,
                      std::int64_t num_devices);

}  // namespace bloomery
