#include "ops/attention/attention_settings.h"
#include "ops/attention/flash_forward_sm80.cuh"

namespace bloomery::attention_cuda {
namespace {

template <class T, int kDim, bool kDropout, bool kVectors>
using Kernel = FlashForwardKernel<T, kDim, kDropout, kVectors, false>;

}  // namespace

void flash_run(Stream& stream, const AttentionForward& k) {
  if (k.problem.bias != nullptr) {
    return flash_run_bias(stream, k);
  }
  if (!stream.device().service<AttentionSettings>().only_sm80 && flash_run_sm90(stream, k)) {
    return;
  }
  run_flash_forward<Kernel>(stream, k);
}

}  // namespace bloomery::attention_cuda
