// Warpgroup products of 16 and 32 columns, as few as a step of generation has rows.
#pragma once

#include "ops/attention/wgmma_sm90.cuh"

namespace bloomery::attention_cuda {

#define BLOOMERY_FEW_COLUMNS(T, NAME)                                                              \
  template <>                                                                                      \
  struct WarpgroupProduct<T, 16> {                                                                 \
    template <bool kTransposedA, bool kTransposedB>                                                \
    __device__ static __forceinline__ void run(float (&c)[8], std::uint64_t a, std::uint64_t b,    \
                                               bool add_to) {                                      \
      asm volatile(                                                                                \
          "{ .reg .pred p; setp.ne.b32 p, %10, 0;\n"                                               \
          "wgmma.mma_async.sync.aligned.m64n16k16.f32." NAME "." NAME                              \
          " {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, p, 1, 1, %11, %12; }\n"                             \
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),    \
            "+f"(c[7])                                                                             \
          : "l"(a), "l"(b), "r"(int{add_to}), "n"(kTransposedA ? 1 : 0), "n"(kTransposedB ? 1 : 0) \
          : "memory");                                                                             \
    }                                                                                              \
  };                                                                                               \
  template <>                                                                                      \
  struct WarpgroupProduct<T, 32> {                                                                 \
    template <bool kTransposedA, bool kTransposedB>                                                \
    __device__ static __forceinline__ void run(float (&c)[16], std::uint64_t a, std::uint64_t b,   \
                                               bool add_to) {                                      \
      asm volatile(                                                                                \
          "{ .reg .pred p; setp.ne.b32 p, %18, 0;\n"                                               \
          "wgmma.mma_async.sync.aligned.m64n32k16.f32." NAME "." NAME                              \
          " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, %16, %17, p, 1, 1, %19, "     \
          "%20; }\n"                                                                               \
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),    \
            "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]),             \
            "+f"(c[13]), "+f"(c[14]), "+f"(c[15])                                                  \
          : "l"(a), "l"(b), "r"(int{add_to}), "n"(kTransposedA ? 1 : 0), "n"(kTransposedB ? 1 : 0) \
          : "memory");                                                                             \
    }                                                                                              \
  };
BLOOMERY_FEW_COLUMNS(__nv_bfloat16, "bf16")
BLOOMERY_FEW_COLUMNS(__half, "f16")
#undef BLOOMERY_FEW_COLUMNS

}  // namespace bloomery::attention_cuda
