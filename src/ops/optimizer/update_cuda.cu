// A warp updates whole units, one access of four elements per thread and buffer, two units at a
// time so that eight loads are in flight.
#include "device/cuda_check.h"
#include "device/warp.cuh"
#include "ops/optimizer/update.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;
constexpr int kUnitsAtOnce = 2;
static_assert(kUnitSize == 4 * kWarpSize, "a warp covers a unit with four elements per thread");

struct NoCopy {};  // value type when the master weights are the value
struct Halves {};  // when value and rest are the halves of the weights

template <class Copy, class Grad>
struct Pointers {
  const Grad* grad;
  float* master;
  float* moment1;
  float* moment2;
  Copy* value;
  std::uint16_t* rest;
  const std::uint8_t* flags;
  std::int64_t count;
};

template <class Copy, class Grad>
__device__ __forceinline__ std::uint16_t* halves_of(const Pointers<Copy, Grad>& at) {
  return reinterpret_cast<std::uint16_t*>(at.value);
}

struct Scalars {
  float grad_factor, step_size, inverse_sqrt_bias2, decay_factor, l2;
};

__device__ __forceinline__ Scalars scalars_of(const UpdateScalars& from) {
  return {static_cast<float>(from.grad_factor), static_cast<float>(from.step_size),
          static_cast<float>(from.inverse_sqrt_bias2), static_cast<float>(from.decay_factor),
          static_cast<float>(from.l2)};
}

struct Adam {
  static constexpr bool kHasMoment2 = true;
  float beta1, rest1, beta2, rest2, epsilon;

  explicit Adam(const AdamUpdate& k)
      : beta1(static_cast<float>(k.beta1)),
        rest1(static_cast<float>(1.0 - k.beta1)),
        beta2(static_cast<float>(k.beta2)),
        rest2(static_cast<float>(1.0 - k.beta2)),
        epsilon(static_cast<float>(k.epsilon)) {}

  __device__ __forceinline__ float operator()(float p, float g, float& m, float& v,
                                              const Scalars& s) const {
    m = beta1 * m + rest1 * g;
    v = beta2 * v + rest2 * g * g;
    return s.decay_factor * p - s.step_size * (m / (sqrtf(v) * s.inverse_sqrt_bias2 + epsilon));
  }
};

struct Momentum {
  static constexpr bool kHasMoment2 = false;
  float momentum;

  explicit Momentum(const MomentumUpdate& k) : momentum(static_cast<float>(k.momentum)) {}

  __device__ __forceinline__ float operator()(float p, float g, float& m, float&,
                                              const Scalars& s) const {
    m = momentum * m + g;
    return s.decay_factor * p - s.step_size * m;
  }
};

// The weights of one thread: four elements of a unit, fewer at the end of the buffer.
struct Part {
  Pack<float, 4> grad, master, moment1, moment2;
  bool decays;
};

template <class Copy, class Grad>
__device__ __forceinline__ float weight_at(const Pointers<Copy, Grad>& at, std::int64_t i) {
  if constexpr (std::is_same_v<Copy, Halves>) {
    return __uint_as_float(joined_bits({halves_of(at)[i], at.rest[i]}));
  } else {
    return at.master[i];
  }
}

// Four weights, at a multiple of four.
template <class Copy, class Grad>
__device__ __forceinline__ void load_weights(const Pointers<Copy, Grad>& at, std::int64_t first,
                                             Pack<float, 4>& weights) {
  if constexpr (std::is_same_v<Copy, Halves>) {
    const Pack<std::uint16_t, 4> value = load_pack<4>(halves_of(at) + first);
    const Pack<std::uint16_t, 4> rest = load_pack<4>(at.rest + first);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      weights[i] = __uint_as_float(joined_bits({value[i], rest[i]}));
    }
  } else {
    weights = load_pack<4>(at.master + first);
  }
}

template <bool kHasMoment2, class Copy, class Grad>
__device__ __forceinline__ Part load_part(const Pointers<Copy, Grad>& at, std::int64_t first) {
  Part part{};
  if (first >= at.count) {
    return part;
  }
  part.decays = (at.flags[first / kUnitSize] & kUnitDecays) != 0;
  if (first + 4 <= at.count) {
    const Pack<Grad, 4> grad = load_pack<4>(at.grad + first);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      part.grad[i] = to_float(grad[i]);
    }
    load_weights(at, first, part.master);
    part.moment1 = load_pack<4>(at.moment1 + first);
    if constexpr (kHasMoment2) {
      part.moment2 = load_pack<4>(at.moment2 + first);
    }
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // constant indices keep the pack in registers
      if (first + i < at.count) {
        part.grad[i] = to_float(at.grad[first + i]);
        part.master[i] = weight_at(at, first + i);
        part.moment1[i] = at.moment1[first + i];
        if constexpr (kHasMoment2) {
          part.moment2[i] = at.moment2[first + i];
        }
      }
    }
  }
  return part;
}

template <class T>
__device__ __forceinline__ void store_up_to(T* to, std::int64_t first, std::int64_t count,
                                            const Pack<T, 4>& pack) {
  if (first + 4 <= count) {
    store_pack(to + first, pack);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (first + i < count) {
        to[first + i] = pack[i];
      }
    }
  }
}

template <class Copy, class Grad>
__device__ __forceinline__ void store_weights(const Pointers<Copy, Grad>& at, std::int64_t first,
                                              const Pack<float, 4>& weights) {
  constexpr bool kSplits = std::is_same_v<Copy, Halves>;
  if constexpr (!kSplits) {
    store_up_to(at.master, first, at.count, weights);
  }
  if constexpr (kSplits || std::is_same_v<Copy, __nv_bfloat16>) {
    Pack<std::uint16_t, 4> value, rest;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const WeightHalves halves = split_weight(__float_as_uint(weights[i]));
      value[i] = halves.value;
      rest[i] = halves.rest;
    }
    store_up_to(halves_of(at), first, at.count, value);
    if constexpr (kSplits) {
      store_up_to(at.rest, first, at.count, rest);
    }
  } else if constexpr (!std::is_same_v<Copy, NoCopy>) {
    Pack<Copy, 4> rounded;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      rounded[i] = from_float<Copy>(weights[i]);
    }
    store_up_to(at.value, first, at.count, rounded);
  }
}

template <class Rule, class Copy, class Grad>
__device__ __forceinline__ void update_part(const Rule& rule, const Pointers<Copy, Grad>& at,
                                            std::int64_t first, Part& part, Scalars s) {
  if (first >= at.count) {
    return;
  }
  if (!part.decays) {
    s.decay_factor = 1;
    s.l2 = 0;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float g = s.grad_factor * part.grad[i] + s.l2 * part.master[i];
    part.master[i] = rule(part.master[i], g, part.moment1[i], part.moment2[i], s);
  }
  store_up_to(at.moment1, first, at.count, part.moment1);
  if constexpr (Rule::kHasMoment2) {
    store_up_to(at.moment2, first, at.count, part.moment2);
  }
  store_weights(at, first, part.master);
}

template <class Rule, class Copy, class Grad>
__global__ void __launch_bounds__(kThreads)
    update(Rule rule, Pointers<Copy, Grad> at, const UpdateScalars* scalars) {
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const std::int64_t unit = std::int64_t{blockIdx.x} * kWarps * kUnitsAtOnce + warp;
  Part parts[kUnitsAtOnce];
#pragma unroll
  for (int j = 0; j < kUnitsAtOnce; ++j) {
    parts[j] = load_part<Rule::kHasMoment2>(at, (unit + j * kWarps) * kUnitSize + lane * 4);
  }
  if (scalars->skip != 0) {  // after the loads, so that they do not wait for it
    return;
  }
  const Scalars s = scalars_of(*scalars);
#pragma unroll
  for (int j = 0; j < kUnitsAtOnce; ++j) {
    update_part(rule, at, (unit + j * kWarps) * kUnitSize + lane * 4, parts[j], s);
  }
}

template <class Copy, class Grad, class Rule>
void launch_update(Stream& stream, const Rule& rule, const UpdateBuffers& buffers,
                   const UpdateScalars* scalars) {
  const Pointers<Copy, Grad> at{buffers.grad.as<Grad>(),
                                buffers.master.as<float>(),
                                buffers.moment1.as<float>(),
                                buffers.moment2.as<float>(),
                                buffers.value.as<Copy>(),
                                buffers.rest.as<std::uint16_t>(),
                                buffers.unit_flags.as<std::uint8_t>(),
                                buffers.numel()};
  constexpr std::int64_t kPerBlock = kWarps * kUnitsAtOnce * kUnitSize;
  const auto blocks = static_cast<unsigned>((at.count + kPerBlock - 1) / kPerBlock);
  update<<<blocks, kThreads, 0, cuda_stream(stream)>>>(rule, at, scalars);
  check_launch("optimizer update");
}

template <class Rule, class Kernel>
void dispatch(Stream& stream, const Kernel& k) {
  const UpdateBuffers& buffers = k.buffers;
  check(buffers.moment1.dtype == DType::fp32, "optimizer: ", buffers.moment1.dtype,
        " weights are not available on CUDA; use fp32, bf16 or fp16");
  if (buffers.numel() == 0) {
    return;
  }
  const Rule rule(k);
  const bool halves = static_cast<bool>(buffers.rest),
             bf16_grad = buffers.grad.dtype == DType::bf16;
  check(!bf16_grad || (buffers.value && buffers.value.dtype == DType::bf16),
        "optimizer: gradients in bf16 go with values in bf16");
  if (halves && bf16_grad) {
    launch_update<Halves, __nv_bfloat16>(stream, rule, buffers, k.scalars);
  } else if (halves) {
    launch_update<Halves, float>(stream, rule, buffers, k.scalars);
  } else if (bf16_grad) {
    launch_update<__nv_bfloat16, __nv_bfloat16>(stream, rule, buffers, k.scalars);
  } else if (!buffers.value) {
    launch_update<NoCopy, float>(stream, rule, buffers, k.scalars);
  } else if (buffers.value.dtype == DType::bf16) {
    launch_update<__nv_bfloat16, float>(stream, rule, buffers, k.scalars);
  } else {
    launch_update<__half, float>(stream, rule, buffers, k.scalars);
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const AdamUpdate& k) { dispatch<Adam>(stream, k); }

void run(OnCuda, Stream& stream, const MomentumUpdate& k) { dispatch<Momentum>(stream, k); }

}  // namespace bloomery
