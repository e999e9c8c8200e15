// The CUDA implementations of attention that attention_cuda.cu chooses from. Any backward may
// follow any forward: all of them store the same log-sum-exp.
#pragma once

#include "ops/attention/attention.h"

namespace bloomery::attention_cuda {

// cuDNN, if this build has it. False: this build or this cuDNN cannot do the problem, and nothing
// was launched.
bool cudnn_available();
// Problems that it is asked to do.
inline bool cudnn_applies(const AttentionProblem& p) {
  return (p.dtype == DType::bf16 || p.dtype == DType::fp16) && p.dropout_threshold == 0 &&
         p.key_begin == nullptr && p.key_end == nullptr && p.bias == nullptr &&
         p.head_dim % 8 == 0 && p.head_dim <= 128 && p.num_sequences > 0 && p.query_length > 0 &&
         p.key_length > 0 && (!p.causal || p.query_length == p.key_length);
}
// Before 9.16 it has no backward for lengths between the tile sizes.
inline bool cudnn_applies_backward(const AttentionProblem& p) {
  constexpr std::int64_t kLengthUnit = 64;
  return cudnn_applies(p) && p.query_length % kLengthUnit == 0 && p.key_length % kLengthUnit == 0;
}
// What its deterministic backward takes for itself.
inline std::int64_t cudnn_backward_bytes(const AttentionProblem& p) {
  return 2 * p.num_sequences * p.num_heads * p.query_length * p.key_length;
}
bool cudnn_run(Stream& stream, const AttentionForward& k);
bool cudnn_run(Stream& stream, const AttentionBackward& k);

// Tensor-core kernels for sm_80 and newer.
bool flash_applies(Stream& stream, const AttentionProblem& problem);
void flash_run(Stream& stream, const AttentionForward& k);
void flash_run(Stream& stream, const AttentionBackward& k);

// The same for sm_90a, with its own instructions; flash_run prefers them. False: not in this build,
// not for this GPU or not for this problem, and nothing was launched. To be called where
// flash_applies.
bool flash_run_sm90(Stream& stream, const AttentionForward& k);
bool flash_run_sm90(Stream& stream, const AttentionBackward& k);

// fp32 arithmetic without tensor cores.
void simple_run(Stream& stream, const AttentionForward& k);
void simple_run(Stream& stream, const AttentionBackward& k);

// Where blocks of a backward kernel leave their parts of the gradient of the bias, if it is wanted:
// [parts, num_heads, 2 * reach + 1] by distance, zeros at first, before the scale.
class BiasPartials {
 public:
  BiasPartials(Stream& stream, const AttentionBackward& k, std::int64_t num_parts,
               std::int64_t reach);
  float* data() const { return static_cast<float*>(parts_.data()); }  // null: not wanted
  // k.grad_bias = factor * the sum of the parts.
  void add_up(float factor) const;

 private:
  Stream& stream_;
  const AttentionBackward& k_;
  std::int64_t reach_;
  Tensor parts_;
};

// delta[sequence, head, query] = factor * sum over channels of out * grad_out, in fp32: what the
// softmax's backward subtracts.
void attention_delta(Stream& stream, const AttentionBackward& k, float factor, const Tensor& delta);

}  // namespace bloomery::attention_cuda
