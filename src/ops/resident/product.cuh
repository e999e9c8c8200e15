// A product of few rows: its input from shared memory, its weights from the ring.
#pragma once

#include "ops/quantized/codes.h"
#include "ops/resident/attention.cuh"
#include "ops/resident/tile.cuh"

namespace bloomery::resident {

__device__ inline float activated(Activation activation, float x) {
  switch (activation) {
    case Activation::gelu_tanh:
      return activate<Activation::gelu_tanh>(x);
    case Activation::gelu_erf:
      return activate<Activation::gelu_erf>(x);
    case Activation::silu:
      return activate<Activation::silu>(x);
    case Activation::relu:
      return activate<Activation::relu>(x);
    case Activation::squared_relu:
      return activate<Activation::squared_relu>(x);
    default:
      return x;
  }
}

// The threads that make one row of the input, and what they sum up together.
template <int kRows>
struct RowTeam {
  static constexpr int kThreads = kComputing / kRows, kTeamWarps = kThreads / kLanes;
  int row, thread;

  __device__ RowTeam()
      : row(static_cast<int>(threadIdx.x) / kThreads),
        thread(static_cast<int>(threadIdx.x) % kThreads) {}
  // All threads of the block come here.
  __device__ float2 sum(float2 value, float2* place) const {
    value = {warp_sum(value.x), warp_sum(value.y)};
    if (threadIdx.x % kLanes == 0) {
      place[threadIdx.x / kLanes] = value;
    }
    sync_computing();
    float2 total = {0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < kTeamWarps; ++i) {
      total.x += place[row * kTeamWarps + i].x;
      total.y += place[row * kTeamWarps + i].y;
    }
    return total;
  }
};

// Calls body(offset in a row) for this thread's packs of it.
template <class Team, class Body>
__device__ __forceinline__ void for_packs(const Team& team, int k, const Body& body) {
  for (int at = team.thread * kPackElements; at < k; at += Team::kThreads * kPackElements) {
    body(at);
  }
}

// Gain and bias of a norm, which lie behind the rows of the input.
template <class T>
__device__ __forceinline__ void copy_gain(const Product& p, T* gain) {
  const NormInput& n = p.norm;
  for (int at = static_cast<int>(threadIdx.x) * kPackElements; at < p.k;
       at += kComputing * kPackElements) {
    copy_async(gain + at, static_cast<const T*>(n.gain) + at);
    if (n.bias != nullptr) {
      copy_async(gain + p.k + at, static_cast<const T*>(n.bias) + at);
    }
  }
}

struct NormStatistics {
  float mean, inverse;
};

// x is kept and becomes y, in shared memory; block 0 writes that to `out`.
template <class Team, class T>
__device__ __forceinline__ void normalise(const Team& team, const Product& p, NormStatistics s,
                                          const T* gain, T* x, T* kept, T* out) {
  const NormInput& n = p.norm;
  for_packs(team, p.k, [&](int at) {
    const auto factors = load_pack<kPackElements>(gain + at);
    const auto shifts = load_pack<kPackElements>(gain + p.k + at);
    EightOf<T> y = load_pack<kPackElements>(x + at);
    store_pack(kept + at, y);
#pragma unroll
    for (int j = 0; j < kPackElements; ++j) {
      const float factor = to_float(factors[j]) + (n.one_plus_gain ? 1.0f : 0.0f);
      const float bias = n.bias != nullptr ? to_float(shifts[j]) : 0.0f;
      y[j] = from_float<T>(fmaf((to_float(y[j]) - s.mean) * s.inverse, factor, bias));
    }
    store_pack(x + at, y);
    if (blockIdx.x == 0) {
      store_pack(out + at, y);
    }
  });
}

// What is added to the stream, from memory or as words of the phase before.
template <class T>
struct Pending {
  const T* memory;
  const std::uint32_t* words;
  std::uint32_t phase;

  __device__ explicit operator bool() const { return memory != nullptr; }
  __device__ __forceinline__ EightOf<T> load(int at) const {
    return words != nullptr ? receive_pack<T>(words + at, phase)
                            : load_shared_by_blocks(memory + at);
  }
};

// As NormForward does it, but that sums are of distances from the first number of the row's stream,
// for which nobody has to wait: an offset far larger than the deviation is harmless.
template <int kRows, class T>
__device__ __noinline__ void make_norm(const Product& p, int rows, std::uint32_t phase_before,
                                       T* input, T* kept_rows, float2* reductions) {
  const RowTeam<kRows> team;
  const T* const gain = input + rows * p.k;
  const NormInput& n = p.norm;
  const bool works = team.row < rows;
  const std::int64_t first = std::int64_t{team.row} * p.k;
  const T* const stream = static_cast<const T*>(n.stream) + first;
  const Pending<T> pending{
      n.pending != nullptr ? static_cast<const T*>(n.pending) + first : nullptr,
      p.input_words != nullptr ? p.input_words + first : nullptr, phase_before};
  T *const x = input + first, *const kept = kept_rows + first;
  float2 sums = {0.0f, 0.0f};
  float origin = 0;
  if (works && !n.rms) {
    origin = to_float(n.stream_is_kept ? *kept : __ldcg(stream));
  }
  if (works) {
    for_packs(team, p.k, [&](int at) {
      EightOf<T> sum = n.stream_is_kept ? load_pack<kPackElements>(kept + at)
                                        : load_shared_by_blocks(stream + at);
      if (pending) {
        const EightOf<T> added = pending.load(at);
#pragma unroll
        for (int j = 0; j < kPackElements; ++j) {
          sum[j] = from_float<T>(to_float(sum[j]) + to_float(added[j]));
        }
        if (blockIdx.x == 0) {
          store_pack(static_cast<T*>(n.sum) + first + at, sum);
        }
      }
      store_pack(x + at, sum);
#pragma unroll
      for (int j = 0; j < kPackElements; ++j) {
        const float value = to_float(sum[j]) - origin;
        sums.x += value;
        sums.y += value * value;
      }
    });
  }
  sums = team.sum(sums, reductions);
  const auto columns = static_cast<float>(p.k);
  const float shift = n.rms ? 0.0f : sums.x / columns, mean = origin + shift;
  const float variance = fmaxf(sums.y / columns - shift * shift, 0.0f);
  const float inverse = 1.0f / sqrtf(variance + n.epsilon);
  if (works) {
    normalise(team, p, {mean, inverse}, gain, x, kept, static_cast<T*>(n.y) + first);
  }
}

template <class T>
__device__ __forceinline__ void make_plain(const Product& p, int rows, std::uint32_t phase_before,
                                           T* input) {
  if (p.input_words != nullptr) {
    return receive_all(p.input_words, rows * p.k, phase_before, input);
  }
  for (int at = static_cast<int>(threadIdx.x) * kPackElements; at < rows * p.k;
       at += kComputing * kPackElements) {
    copy_async(input + at, static_cast<const T*>(p.a) + at);
  }
  wait_for_copies();
}

// The input of a product, in shared memory.
template <int kRows, class T>
__device__ __forceinline__ void make_input(const Phase& phase, int rows, std::uint32_t phase_before,
                                           const Room<T>& room) {
  const Product& p = phase.product;
  switch (p.input) {
    case Product::Input::norm:
      make_norm<kRows>(p, rows, phase_before, room.input(), room.stream(), room.shared.reductions);
      break;
    case Product::Input::attention:
      combine<T>(phase.attention, rows, room.shared, static_cast<T*>(p.made), room.input());
      break;
    default:
      make_plain(p, rows, phase_before, room.input());
  }
  sync_computing();
}

// What the sums with a row of b are multiplied by, and its bias.
template <class T>
__device__ __forceinline__ float2 scale_and_bias(const Product& p, int row) {
  float2 both = {1.0f, p.bias != nullptr ? to_float(static_cast<const T*>(p.bias)[row]) : 0.0f};
  if (p.format != QuantizedFormat::none) {
    const float largest = p.format == QuantizedFormat::int8
                              ? ByteCode<QuantizedFormat::int8>::kLargest
                              : ByteCode<QuantizedFormat::fp8>::kLargest;
    both.x = to_float(static_cast<const T*>(p.scales)[row]) / largest;
  }
  return both;
}

// The sums of rows of b by warp, from row number `first` of this block's on.
template <int kRows>
struct KeptSums {
  const Product& p;
  const Shared& shared;
  int first;

  // Of row `number` with row q of the input, scaled, and the bias.
  template <class T>
  __device__ __forceinline__ float total(int number, int column, int q) const {
    const float2 both =
        number < kKeptBias ? shared.scale_and_bias[number] : scale_and_bias<T>(p, column);
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) {
      sum += shared.sums[warp][(number - first) * kRows + q];
    }
    return fmaf(sum, both.x, both.y);
  }
};

// Rows number [first, end) of this block are done.
template <int kRows, class T>
__device__ __noinline__ void finish(const Product& p, int rows, int first, int end,
                                    std::uint32_t phase, const Shared& shared) {
  sync_computing();
  const Share share(p);
  const KeptSums<kRows> kept{p, shared, first};
  const bool gated = p.gated != nullptr;
  for (int i = first + static_cast<int>(threadIdx.x); i < (gated ? share.count : end);
       i += kComputing) {
    const int column = share.begin + i;
    for (int q = 0; q < rows; ++q) {
      const float sum = activated(p.activation, kept.template total<T>(i, column, q));
      const std::int64_t at = std::int64_t{q} * p.n + column;
      if (p.fp32_result) {
        static_cast<float*>(p.d)[at] = sum;
        continue;
      }
      const T rounded = from_float<T>(sum);
      T result = rounded;
      if (gated) {
        const T up = from_float<T>(kept.template total<T>(share.count + i, column + share.half, q));
        result = from_float<T>(activated(p.gate, to_float(rounded)) * to_float(up));
        static_cast<T*>(p.d)[at + share.half] = up;
        static_cast<T*>(p.gated)[std::int64_t{q} * share.half + column] = result;
      }
      if (p.words != nullptr) {
        send(p.words + q * (gated ? share.half : p.n) + column, result, phase);
      }
      static_cast<T*>(p.d)[at] = rounded;
    }
  }
}

// Multiplies a group of rows of b, tile by tile, and keeps this warp's sums.
template <int kRows, class T>
__device__ __forceinline__ void multiply_group(const Product& p, int rows, int group_rows,
                                               const Ring& ring, Turn& turn, const T* input,
                                               float* kept) {
  const int k = p.k, chunk = p.chunk, pitch = tile_pitch(p.format, chunk);
  const QuantizedFormat format = p.format;
  GroupSums sums;
  for (int first = 0; first < k; first += chunk, turn.next()) {
    ring.full(turn.slot).wait(turn.round);
    const unsigned char* const tile = ring.tile(turn.slot);
    const InputRows<T> x{input + first, k, rows};
    const int count = min(chunk, k - first);
    if (format == QuantizedFormat::none) {
      multiply_tile<QuantizedFormat::none>(tile, pitch, count, x, sums);
    } else if (format == QuantizedFormat::int8) {
      multiply_tile<QuantizedFormat::int8>(tile, pitch, count, x, sums);
    } else {
      multiply_tile<QuantizedFormat::fp8>(tile, pitch, count, x, sums);
    }
    __syncwarp();
    if (threadIdx.x % kLanes == 0) {
      ring.empty(turn.slot).arrive();
    }
  }
  sums.template keep<kRows>(group_rows, kept);
}

template <int kRows, class T>
__device__ __forceinline__ void multiply(const Phase& phase, int rows, const Ring& ring, Turn& turn,
                                         const Room<T>& room, const Place& place) {
  const Product& p = phase.product;
  const Share share(p);
  if (p.input == Product::Input::norm) {
    copy_gain(p, room.input() + rows * p.k);
  }
  place.wait();
  make_input<kRows>(phase, rows, place.number - 1, room);
  float2 of_rows[kKeptBias / kComputing];  // on their way beside the first group
#pragma unroll
  for (int j = 0; j < kKeptBias / kComputing; ++j) {
    const int i = static_cast<int>(threadIdx.x) + j * kComputing;
    of_rows[j] = i < share.all() ? scale_and_bias<T>(p, share.row(i)) : float2{0.0f, 0.0f};
  }
  const Groups groups(share.count);
  float* const sums = room.shared.sums[threadIdx.x / kLanes];
  int kept_from = 0;
  for (int i = 0; i < share.runs * groups.count; ++i) {
    const int run = i / groups.count, group = i % groups.count;
    const int first = run * share.count + group * groups.rows, count = groups.rows_of(group);
    if ((first + count - kept_from) * kRows > kKeptSums) {
      finish<kRows, T>(p, rows, kept_from, first, place.number, room.shared);
      sync_computing();
      kept_from = first;
    }
    multiply_group<kRows>(p, rows, count, ring, turn, room.input(),
                          sums + (first - kept_from) * kRows);
    if (i == 0) {
#pragma unroll
      for (int j = 0; j < kKeptBias / kComputing; ++j) {  // read behind the barrier of finish()
        room.shared.scale_and_bias[threadIdx.x + j * kComputing] = of_rows[j];
      }
    }
  }
  finish<kRows, T>(p, rows, kept_from, share.all(), place.number, room.shared);
}

}  // namespace bloomery::resident
