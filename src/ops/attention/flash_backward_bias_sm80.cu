#include "ops/attention/flash_backward_sm80.cuh"

namespace bloomery::attention_cuda {
namespace {

template <class T, int kDim, bool kDropout, bool kVectors>
using Kernel = FlashBackwardKernel<T, kDim, kDropout, kVectors, true>;

}  // namespace

void flash_run_bias(Stream& stream, const AttentionBackward& k) {
  run_flash_backward<Kernel>(stream, k);
}

}  // namespace bloomery::attention_cuda
