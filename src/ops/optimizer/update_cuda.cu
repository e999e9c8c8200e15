// A warp updates whole units, one access of four elements per thread and buffer, two units at a
// time so that eight loads are in flight.
#include <utility>

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

template <int kTensors, class Copy, class Grad>
struct Pointers {
  const Grad* grad;
  float* master;
  float* state[kTensors];
  Copy* value;
  std::uint16_t* low;
  const std::uint8_t* flags;
  std::int64_t count;
};

template <int kTensors, class Copy, class Grad>
__device__ __forceinline__ std::uint16_t* halves_of(const Pointers<kTensors, Copy, Grad>& at) {
  return reinterpret_cast<std::uint16_t*>(at.value);
}

// The weights of one thread: four elements of a unit, fewer at the end of the buffer.
template <int kTensors>
struct Part {
  Pack<float, 4> grad, master, state[kTensors];
  bool decays;
};

template <int kTensors, class Copy, class Grad>
__device__ __forceinline__ float weight_at(const Pointers<kTensors, Copy, Grad>& at,
                                           std::int64_t i) {
  if constexpr (std::is_same_v<Copy, Halves>) {
    return __uint_as_float(joined_bits({halves_of(at)[i], at.low[i]}));
  } else {
    return at.master[i];
  }
}

// Four weights, at a multiple of four.
template <int kTensors, class Copy, class Grad>
__device__ __forceinline__ void load_weights(const Pointers<kTensors, Copy, Grad>& at,
                                             std::int64_t first, Pack<float, 4>& weights) {
  if constexpr (std::is_same_v<Copy, Halves>) {
    const Pack<std::uint16_t, 4> value = load_pack<4>(halves_of(at) + first);
    const Pack<std::uint16_t, 4> low = load_pack<4>(at.low + first);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      weights[i] = __uint_as_float(joined_bits({value[i], low[i]}));
    }
  } else {
    weights = load_pack<4>(at.master + first);
  }
}

template <int kTensors, class Copy, class Grad>
__device__ __forceinline__ Part<kTensors> load_part(const Pointers<kTensors, Copy, Grad>& at,
                                                    std::int64_t first) {
  Part<kTensors> part{};
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
#pragma unroll
    for (int t = 0; t < kTensors; ++t) {
      part.state[t] = load_pack<4>(at.state[t] + first);
    }
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // constant indices keep the pack in registers
      if (first + i < at.count) {
        part.grad[i] = to_float(at.grad[first + i]);
        part.master[i] = weight_at(at, first + i);
#pragma unroll
        for (int t = 0; t < kTensors; ++t) {
          part.state[t][i] = at.state[t][first + i];
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

template <int kTensors, class Copy, class Grad>
__device__ __forceinline__ void store_weights(const Pointers<kTensors, Copy, Grad>& at,
                                              std::int64_t first, const Pack<float, 4>& weights) {
  constexpr bool kSplits = std::is_same_v<Copy, Halves>;
  if constexpr (!kSplits) {
    store_up_to(at.master, first, at.count, weights);
  }
  if constexpr (kSplits || std::is_same_v<Copy, __nv_bfloat16>) {
    Pack<std::uint16_t, 4> value, low;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const SplitMaster halves = split_weight(__float_as_uint(weights[i]));
      value[i] = halves.value;
      low[i] = halves.low;
    }
    store_up_to(halves_of(at), first, at.count, value);
    if constexpr (kSplits) {
      store_up_to(at.low, first, at.count, low);
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

template <class Element, int kTensors, std::size_t... kIndices>
__device__ __forceinline__ float updated(const Element& element, const ElementScalars<float>& s,
                                         float g, Part<kTensors>& part, int i,
                                         std::index_sequence<kIndices...>) {
  return element(s, part.master[i], g, part.state[kIndices][i]...);
}

template <class Element, int kTensors, class Copy, class Grad>
__device__ __forceinline__ void update_part(const Element& element,
                                            const Pointers<kTensors, Copy, Grad>& at,
                                            std::int64_t first, Part<kTensors>& part,
                                            ElementScalars<float> s) {
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
    part.master[i] = updated(element, s, g, part, i, std::make_index_sequence<kTensors>());
  }
#pragma unroll
  for (int t = 0; t < kTensors; ++t) {
    store_up_to(at.state[t], first, at.count, part.state[t]);
  }
  store_weights(at, first, part.master);
}

template <class Element, int kTensors, class Copy, class Grad>
__global__ void __launch_bounds__(kThreads)
    update(Element element, Pointers<kTensors, Copy, Grad> at, const UpdateScalars* scalars) {
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const std::int64_t unit = std::int64_t{blockIdx.x} * kWarps * kUnitsAtOnce + warp;
  Part<kTensors> parts[kUnitsAtOnce];
#pragma unroll
  for (int j = 0; j < kUnitsAtOnce; ++j) {
    parts[j] = load_part(at, (unit + j * kWarps) * kUnitSize + lane * 4);
  }
  if (scalars->skip != 0) {  // after the loads, so that they do not wait for it
    return;
  }
  const ElementScalars<float> s(*scalars, true);
#pragma unroll
  for (int j = 0; j < kUnitsAtOnce; ++j) {
    update_part(element, at, (unit + j * kWarps) * kUnitSize + lane * 4, parts[j], s);
  }
}

template <class Copy, class Grad, class Rule>
void launch_update(Stream& stream, const Rule& rule, const UpdateBuffers& buffers,
                   const UpdateScalars* scalars) {
  constexpr int kTensors = std::size(Rule::kState);
  Pointers<kTensors, Copy, Grad> at{.grad = buffers.grad.as<Grad>(),
                                    .master = buffers.master.as<float>(),
                                    .state = {},
                                    .value = buffers.value.as<Copy>(),
                                    .low = buffers.low.as<std::uint16_t>(),
                                    .flags = buffers.unit_flags.as<std::uint8_t>(),
                                    .count = buffers.numel()};
  for (int t = 0; t < kTensors; ++t) {
    at.state[t] = buffers.state[t].as<float>();
  }
  constexpr std::int64_t kPerBlock = kWarps * kUnitsAtOnce * kUnitSize;
  const auto blocks = static_cast<unsigned>((at.count + kPerBlock - 1) / kPerBlock);
  const typename Rule::template Element<float> element(rule);
  update<<<blocks, kThreads, 0, cuda_stream(stream)>>>(element, at, scalars);
  check_launch("optimizer update");
}

template <class Rule>
void dispatch(Stream& stream, const Update& k, const Rule& rule) {
  const UpdateBuffers& buffers = k.buffers;
  const bool halves = buffers.form == WeightForm::split,
             bf16_grad = buffers.grad.dtype == DType::bf16;
  if (halves && bf16_grad) {
    launch_update<Halves, __nv_bfloat16>(stream, rule, buffers, k.scalars);
  } else if (halves) {
    launch_update<Halves, float>(stream, rule, buffers, k.scalars);
  } else if (bf16_grad) {
    launch_update<__nv_bfloat16, __nv_bfloat16>(stream, rule, buffers, k.scalars);
  } else if (buffers.form == WeightForm::exact) {
    launch_update<NoCopy, float>(stream, rule, buffers, k.scalars);
  } else if (buffers.value.dtype == DType::bf16) {
    launch_update<__nv_bfloat16, float>(stream, rule, buffers, k.scalars);
  } else {
    launch_update<__half, float>(stream, rule, buffers, k.scalars);
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const Update& k) {
  const UpdateBuffers& buffers = k.buffers;
  check(buffers.state[0].dtype == DType::fp32, "optimizer: ", buffers.state[0].dtype,
        " weights are not available on CUDA; use fp32, bf16 or fp16");
  check(buffers.grad.dtype != DType::bf16 ||
            (buffers.form != WeightForm::exact && buffers.value.dtype == DType::bf16),
        "optimizer: gradients in bf16 go with values in bf16");
  if (buffers.numel() > 0) {
    std::visit([&](const auto& rule) { dispatch(stream, k, rule); }, k.rule);
  }
}

}  // namespace bloomery
