#include "ops/attention/flash_forward_sm80.cuh"

namespace bloomery::attention_cuda {
namespace {

template <class T, int kDim, bool kDropout, bool kVectors>
using Kernel = FlashForwardKernel<T, kDim, kDropout, kVectors, true>;

}  // namespace

void flash_run_bias(Stream& stream, const AttentionForward& k) {
  run_flash_forward<Kernel>(stream, k);
}

}  // namespace bloomery::attention_cuda
