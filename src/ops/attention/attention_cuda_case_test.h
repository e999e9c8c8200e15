// Runs the attention kernels on drawn inputs, on either device and with a forced implementation,
// for attention_cuda_test.cpp.
#pragma once

#include <string>

#include "harness/op_harness.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_settings.h"

namespace bloomery::testing {

enum class KeyRanges : std::uint8_t {
  none,
  documents,     // every query sees its own document
  padding,       // the last keys are seen by no one, the last queries see nothing
  empty_middle,  // more than a tile of queries in the middle sees nothing
};

struct AttentionCase {
  std::int64_t num_sequences = 2, query_length = 1, key_length = 1;
  std::int64_t num_heads = 3, num_groups = 3, head_dim = 64;
  bool cross = false;  // Q in a buffer of its own
  bool causal = true;
  KeyRanges ranges = KeyRanges::none;
  float dropout = 0;
  std::int64_t window = 0;
  std::int64_t bias_reach = 0;  // of a bias by distance; 0: none
};
std::string name(const AttentionCase& c);  // letters, digits and underscores

struct AttentionRun {
  DeviceKind device = DeviceKind::cpu;
  DType dtype = DType::fp64;
  DType rounded_to = DType::fp64;  // of the inputs
  AttentionBackend forward = AttentionBackend::automatic;
  AttentionBackend backward = AttentionBackend::automatic;
  bool only_sm80 = false;  // see AttentionSettings
};
// "out", "lse" and the gradients of the input buffers and of the bias.
Results run_attention(const AttentionCase& c, const AttentionRun& run);

bool attention_cudnn_available();

// TFLOP/s of forward and backward by implementation, shape and dropout. Causal: half the products
// count; the backward counts 2.5 times the forward.
void print_attention_rates();

}  // namespace bloomery::testing
