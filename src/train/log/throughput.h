// How fast an iteration was, by the formulas of the programs whose figures people compare with.
#pragma once

#include <cstdint>

namespace bloomery {

enum class Recomputation { none, selective, full };

// What the formulas need to know of a model.
struct ModelShape {
  std::int64_t layers = 0, width = 0, heads = 0, kv_heads = 0;
  std::int64_t ffn_width = 0;
  std::int64_t padded_vocabulary = 0;
  bool gated = false;               // SwiGLU: three matrices instead of two
  std::int64_t active_experts = 1;  // per token
};

// Operations of one iteration over `batch` sequences of `length` tokens.
//
// Megatron-DeepSpeed's count: multiplications of all matrices, forward once and backward twice,
// attention as if it were not causal, and the work of recomputation on top. Keys and values of
// grouped queries count floor(2 / group) of the width squared, which is 0 for groups above 2.
double deepspeed_flops(const ModelShape& shape, std::int64_t batch, std::int64_t length,
                       Recomputation recomputation);
// Megatron-LM's count: the operations of the model alone. Attention is causal, grouped keys and
// values count what they are, recomputation counts nothing. The numerator of MFU.
double model_flops(const ModelShape& shape, std::int64_t batch, std::int64_t length);

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
