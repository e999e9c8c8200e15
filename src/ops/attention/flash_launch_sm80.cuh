// Chooses the instance of a flash kernel: element type, rounded head_dim, dropout and alignment.
#pragma once

#include <initializer_list>

#include "device/cuda_check.h"
#include "ops/attention/attention_backends.h"

namespace bloomery::attention_cuda {

// The kernels for sm_80 with a bias, in files of their own since they take long to compile.
void flash_run_bias(Stream& stream, const AttentionForward& k);
void flash_run_bias(Stream& stream, const AttentionBackward& k);

// Whether rows of all these views, and these dense buffers, can be read and written 16 bytes at a
// time.
inline bool vector_access(const AttentionProblem& problem, std::initializer_list<HeadView> views,
                          std::initializer_list<const void*> dense) {
  bool aligned = problem.head_dim % 8 == 0;
  for (const HeadView& view : views) {
    aligned = aligned && reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0 &&
              view.token_stride % 8 == 0 && view.group_stride % 8 == 0;
  }
  for (const void* data : dense) {
    aligned = aligned && reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
  }
  return aligned;
}

// Calls body.template operator()<Kernel<T, kDim, kDropout, kVectors>>(). Unaligned heads, which are
// rare, share the instance with the largest head_dim.
template <template <class, int, bool, bool> class Kernel, class Body>
void dispatch_flash(const AttentionProblem& problem, bool vectors, const Body& body) {
  const auto with_type = [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto with_dropout = [&]<bool kDropout>() {
      if (!vectors) {
        body.template operator()<Kernel<T, 128, kDropout, false>>();
      } else if (problem.head_dim <= 64) {
        body.template operator()<Kernel<T, 64, kDropout, true>>();
      } else if (problem.head_dim <= 96) {
        body.template operator()<Kernel<T, 96, kDropout, true>>();
      } else {
        body.template operator()<Kernel<T, 128, kDropout, true>>();
      }
    };
    if (problem.dropout_threshold > 0) {
      with_dropout.template operator()<true>();
    } else {
      with_dropout.template operator()<false>();
    }
  };
  if (problem.dtype == DType::bf16) {
    with_type(TypeTag<__nv_bfloat16>{});
  } else {
    with_type(TypeTag<__half>{});
  }
}

// Launches `kernel` on a one-dimensional grid, with shared memory beyond the default limit.
template <class Args>
void launch_flash(Stream& stream, void (*kernel)(Args), std::int64_t num_blocks, int num_threads,
                  int shared_bytes, const Args& args, const char* name) {
  if (num_blocks == 0) {
    return;
  }
  check(num_blocks < (std::int64_t{1} << 31), "attention: ", num_blocks,
        " blocks are too many for one launch; use fewer sequences per micro-batch");
  check_cuda(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
      "cudaFuncSetAttribute");
  kernel<<<static_cast<unsigned>(num_blocks), static_cast<unsigned>(num_threads),
           static_cast<std::size_t>(shared_bytes), cuda_stream(stream)>>>(args);
  check_launch(name);
}

}  // namespace bloomery::attention_cuda
