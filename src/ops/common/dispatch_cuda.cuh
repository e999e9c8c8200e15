// Chooses the device type of a dtype: dispatch_device(dtype, [&](auto tag) { ... }) calls the body
// with TypeTag<float>, TypeTag<__nv_bfloat16> or TypeTag<__half>.
#pragma once

#include "device/warp.cuh"
#include "tensor/dtype.h"

namespace bloomery {

template <class Body>
void dispatch_device(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::fp32:
      return body(TypeTag<float>{});
    case DType::bf16:
      return body(TypeTag<__nv_bfloat16>{});
    case DType::fp16:
      return body(TypeTag<__half>{});
    default:
      throw Error(concat("dtype ", name(dtype), " is not available on CUDA"));
  }
}

// Blocks for `count` items of `per_block` each, at least one.
inline unsigned int num_blocks(std::int64_t count, std::int64_t per_block) {
  const std::int64_t blocks = (count + per_block - 1) / per_block;
  return static_cast<unsigned int>(blocks < 1 ? 1 : blocks);
}

}  // namespace bloomery
