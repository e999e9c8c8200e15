// A product of few rows: its input from shared memory, its weights from the ring.
#pragma once

#include "generate/resident/flagged_packets.cuh"
#include "generate/resident/tile.cuh"
#include "ops/quantized/codes.h"

namespace bloomery::resident {

__device__ inline float activated(Activation activation, float x) {
  switch (activation) {
    case Activation::gelu_tanh:
      return activate<Activation::gelu_tanh, Accuracy::brief>(x);
    case Activation::gelu_erf:
      return activate<Activation::gelu_erf, Accuracy::brief>(x);
    case Activation::silu:
      return activate<Activation::silu, Accuracy::brief>(x);
    case Activation::relu:
      return activate<Activation::relu, Accuracy::brief>(x);
    case Activation::squared_relu:
      return activate<Activation::squared_relu, Accuracy::brief>(x);
    default:
      return x;
  }
}

// The threads that make one row of the input, and what they sum up together.
template <int kRows>
struct RowTeam {
  static constexpr int kThreads = kComputing / kRows, kTeamWarps = kThreads / kLanes;
  static constexpr int kStep = kThreads * kFour;
  int row, first;  // the first numbers of this thread

  __device__ RowTeam()
      : row(static_cast<int>(threadIdx.x) / kThreads),
        first(static_cast<int>(threadIdx.x) % kThreads * kFour) {}
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

template <class T>
__device__ __forceinline__ uint2 packed(float4 x) {
  return {attention_cuda::pack_pair<T>(x.x, x.y), attention_cuda::pack_pair<T>(x.z, x.w)};
}
template <class T>
__device__ __forceinline__ uint2 load_four(const T* from) {
  return *reinterpret_cast<const uint2*>(from);
}
template <class T>
__device__ __forceinline__ void store_four(T* to, uint2 four) {
  *reinterpret_cast<uint2*>(to) = four;
}

// Asks for gain and bias of a norm, which lie behind the rows of the input.
template <class T>
__device__ __forceinline__ void ask_gain(const Product& p, T* gain) {
#pragma unroll 1
  for (int at = static_cast<int>(threadIdx.x) * kPackElements; at < p.k;
       at += kComputing * kPackElements) {
    copy_async(gain + at, static_cast<const T*>(p.norm.gain) + at);
    if (p.norm.bias != nullptr) {
      copy_async(gain + p.k + at, static_cast<const T*>(p.norm.bias) + at);
    }
  }
}

struct NormStatistics {
  float mean, inverse;
};

// Of the kept x, y into shared memory; block 0 writes it to `out` too.
template <class Team, class T>
__device__ __forceinline__ void normalise(const Team& team, const Product& p, NormStatistics s,
                                          const T* gain, const T* kept, T* y, T* out) {
  const bool has_bias = p.norm.bias != nullptr;
  const float more = p.norm.one_plus_gain ? 1.0f : 0.0f;
#pragma unroll 1
  for (int at = team.first; at < p.k; at += Team::kStep) {
    float4 x = unpacked<T>(load_four(kept + at));
    const float4 factor = unpacked<T>(load_four(gain + at));
    float4 bias = {0.0f, 0.0f, 0.0f, 0.0f};
    if (has_bias) {
      bias = unpacked<T>(load_four(gain + p.k + at));
    }
    x.x = fmaf((x.x - s.mean) * s.inverse, factor.x + more, bias.x);
    x.y = fmaf((x.y - s.mean) * s.inverse, factor.y + more, bias.y);
    x.z = fmaf((x.z - s.mean) * s.inverse, factor.z + more, bias.z);
    x.w = fmaf((x.w - s.mean) * s.inverse, factor.w + more, bias.w);
    const uint2 result = packed<T>(x);
    store_four(y + at, result);
    if (blockIdx.x == 0) {
      store_four(out + at, result);
    }
  }
}

// x = stream + pending, rounded and kept; the sums of its distances from the first number of the
// stream, and of their squares.
template <class Team, class T>
__device__ __forceinline__ float2 add_pending(const Team& team, const Product& p,
                                              const Results<T>& pending, const T* stream,
                                              float origin, T* kept, T* out) {
  constexpr int kAtOnce = 2;
  const bool is_kept = p.norm.stream_is_kept;
  float2 sums = {0.0f, 0.0f};
#pragma unroll 1
  for (int first = team.first; first < p.k; first += kAtOnce * Team::kStep) {
    uint2 old[kAtOnce], added[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (const int at = first + i * Team::kStep; i == 0 || at < p.k) {
        old[i] =
            is_kept ? load_four(kept + at) : __ldcg(reinterpret_cast<const uint2*>(stream + at));
      }
    }
    if (pending.memory != nullptr) {
      pending.load(first, Team::kStep, p.k, added);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = first + i * Team::kStep;
      if (i > 0 && at >= p.k) {
        break;
      }
      if (pending.memory != nullptr) {
        const float4 a = unpacked<T>(old[i]), b = unpacked<T>(added[i]);
        old[i] = packed<T>({a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w});
        if (blockIdx.x == 0) {
          store_four(out + at, old[i]);
        }
      }
      store_four(kept + at, old[i]);
      float4 x = unpacked<T>(old[i]);
      x = {x.x - origin, x.y - origin, x.z - origin, x.w - origin};
      sums.x += (x.x + x.y) + (x.z + x.w);
      sums.y += fmaf(x.x, x.x, x.y * x.y) + fmaf(x.z, x.z, x.w * x.w);
    }
  }
  return sums;
}

// As NormForward does it, but that sums are of distances from the first number of the row's stream,
// for which nobody has to wait: an offset far larger than the deviation is harmless.
template <int kRows, class T>
__device__ __forceinline__ void make_norm(const Product& p, int rows, std::uint32_t phase_before,
                                          const Room<T>& room) {
  const RowTeam<kRows> team;
  const NormInput& n = p.norm;
  const bool works = team.row < rows;
  const int first = works ? team.row * p.k : 0;
  const T* const stream = static_cast<const T*>(n.stream) + first;
  const Results<T> pending{
      n.pending != nullptr ? static_cast<const T*>(n.pending) + first : nullptr,
      p.input_words != nullptr ? p.input_words + first : nullptr, phase_before};
  T* const kept = room.stream() + first;
  float2 sums = {0.0f, 0.0f};
  float origin = 0;
  if (works && !n.rms) {
    origin = n.stream_is_kept ? room.shared.origins[team.row] : to_float(__ldcg(stream));
  }
  if (works) {
    sums = add_pending(team, p, pending, stream, origin, kept, static_cast<T*>(n.sum) + first);
  }
  wait_for_copies();
  sums = team.sum(sums, room.shared.reductions);
  const float each = 1.0f / static_cast<float>(p.k);
  const float shift = n.rms ? 0.0f : sums.x * each, mean = origin + shift;
  const float variance = fmaxf(fmaf(sums.y, each, -shift * shift), 0.0f);
  const float inverse = rsqrtf(variance + n.epsilon);
  if (works) {
    if (team.first == 0) {
      room.shared.origins[team.row] = to_float(*kept);
    }
    normalise(team, p, {mean, inverse}, room.input() + rows * p.k, kept, room.input() + first,
              static_cast<T*>(n.y) + first);
  }
}

// The input of a product, in shared memory.
template <int kRows, class T>
__device__ __forceinline__ void make_input(const Product& p, int rows, std::uint32_t phase_before,
                                           const Room<T>& room) {
  if (p.normalised) {
    make_norm<kRows>(p, rows, phase_before, room);
  } else {
    receive_all(Results<T>{static_cast<const T*>(p.a), p.input_words, phase_before}, rows * p.k,
                room.input());
    wait_for_copies();
  }
  sync_computing();
}

// What the sums with a row of b are multiplied by and what is added, as they lie in memory.
template <class T>
struct ScaleAndBias {
  T scale, bias;

  template <QuantizedFormat kFormat>
  __device__ __forceinline__ void load(const Product& p, int row) {
    scale = bias = from_float<T>(0.0f);
    if (p.bias != nullptr) {
      bias = static_cast<const T*>(p.bias)[row];
    }
    if constexpr (kFormat != QuantizedFormat::none) {
      scale = static_cast<const T*>(p.scales)[row];
    }
  }
  template <QuantizedFormat kFormat>
  __device__ __forceinline__ float2 numbers() const {
    float2 both = {1.0f, to_float(bias)};
    if constexpr (kFormat != QuantizedFormat::none) {
      both.x = to_float(scale) / ByteCode<kFormat>::kLargest;
    }
    return both;
  }
};

// Of the first row that a thread finishes, and of its second half: they are on their way while the
// block waits for its input.
template <class T>
struct FirstRows {
  ScaleAndBias<T> one, two;

  template <QuantizedFormat kFormat>
  __device__ __forceinline__ void load(const Product& p, const Share& share) {
    const int i = static_cast<int>(threadIdx.x);
    if (i < share.count) {
      one.template load<kFormat>(p, share.begin + i);
      two = one;
      if (p.gated != nullptr) {
        two.template load<kFormat>(p, share.begin + i + share.half);
      }
    }
  }
};

// The sum of a row of b with a row of the input over all warps, scaled, and the bias.
__device__ __forceinline__ float total(const float* sums, int place, float2 scale_and_bias) {
  const auto* const of_warps = reinterpret_cast<const float4*>(sums + place * kWarps);
  static_assert(kWarps == 8);
  const float4 a = of_warps[0], b = of_warps[1];
  const float sum = ((a.x + a.y) + (a.z + a.w)) + ((b.x + b.y) + (b.z + b.w));
  return fmaf(sum, scale_and_bias.x, scale_and_bias.y);
}

// Rows number [first, end) of this block are done.
template <int kRows, QuantizedFormat kFormat, class T>
__device__ __forceinline__ void finish(const Product& p, const Share& share, int rows, int first,
                                       int end, const FirstRows<T>& first_rows, std::uint32_t phase,
                                       const float* sums) {
  const bool gated = p.gated != nullptr;
  const Activation activation = p.activation;
  const int n = p.n;
  std::uint32_t* const words = p.words;
  sync_computing();
#pragma unroll 1
  for (int i = first + static_cast<int>(threadIdx.x); i < (gated ? share.count : end);
       i += kComputing) {
    const int column = share.begin + i;
    ScaleAndBias<T> one = first_rows.one, two = first_rows.two;
    if (i != static_cast<int>(threadIdx.x)) {
      one.template load<kFormat>(p, column);
      if (gated) {
        two.template load<kFormat>(p, column + share.half);
      }
    }
#pragma unroll 1
    for (int q = 0; q < (kRows == 1 ? 1 : rows); ++q) {
      const float sum = activated(
          activation, total(sums, (i - first) * kRows + q, one.template numbers<kFormat>()));
      const int at = q * n + column;
      if (p.fp32_result) {
        static_cast<float*>(p.d)[at] = sum;
        continue;
      }
      const T rounded = from_float<T>(sum);
      T result = rounded, up = rounded;
      if (gated) {
        up = from_float<T>(
            total(sums, (share.count + i - first) * kRows + q, two.template numbers<kFormat>()));
        result = from_float<T>(activated(p.gate, to_float(rounded)) * to_float(up));
      }
      const int result_at = gated ? q * share.half + column : at;
      if (words != nullptr) {
        send(words + result_at, result, phase);
      }
      static_cast<T*>(p.d)[at] = rounded;
      if (gated) {
        static_cast<T*>(p.d)[at + share.half] = up;
        static_cast<T*>(p.gated)[result_at] = result;
      }
    }
  }
}

// The tiles of a product, as the warps of this block take them from the ring. Each is in registers
// while the one before is multiplied, and the first one while the block waits for its input.
template <int kRows, QuantizedFormat kFormat, class T>
struct TilesOfBlock {
  using Part = LanePart<kFormat>;
  const Ring& ring;
  Turn& turn;
  const Share& share;
  int k, chunk;
  Part part;       // of the tile that is next
  int number = 0;  // of its first row
  const T* x = nullptr;
  float* kept = nullptr;
  GroupSums sums;
  int left = 0, count = 0, next_count = 0, room = 0;  // columns, rows, and of the next tile; sums

  __device__ __forceinline__ void load(int rows, Part& to) {
    const int bytes = rows * tile_pitch(kFormat);
    turn.place(ring, bytes);
    const auto slot = turn.slot();
    ring.full(slot).wait(turn.round());
    to.load(ring.at(turn.offset), rows);
    turn.next(bytes);
    __syncwarp();
    if (threadIdx.x % kLanes == 0) {
      ring.empty(slot).arrive();
    }
  }

  // Multiplies a tile, with the next one on its way; of codes, for which registers are too few, it
  // is asked for when this one is used up. True: rows end, and there is no room for the sums of
  // others, or none are left.
  __device__ __forceinline__ bool advance(const T* input, const Part& now, Part& next) {
    const int columns = min(chunk, left);
    const bool ends = left <= chunk, more = !ends || next_count > 0;
    const int rows = ends ? next_count : count;
    if (!Part::kCodes && more) {
      load(rows, next);
    }
    now.multiply(x, columns, sums);
    if (Part::kCodes && more) {
      load(rows, next);
    }
    x += chunk;
    left -= chunk;
    if (!ends) {
      return false;
    }
    sums.template keep<kRows>(count, kept);
    kept += count * kRows * kWarps;
    number += count;
    start(input);
    return count == 0 || room < 0;
  }
  __device__ __forceinline__ void start(const T* input) {
    count = share.rows_from(number);
    next_count = share.rows_from(number + count);
    room -= count * kRows;
    sums = {};
    x = input;
    left = k;
  }

  // Multiplies as many rows as there is room for sums.
  __device__ __forceinline__ void multiply(const T* input, int num_sums, float* to) {
    kept = to;
    room = num_sums;
    start(input);
    if constexpr (Part::kCodes) {
#pragma unroll 1
      while (!advance(input, part, part)) {
      }
    } else {
      Part other;
#pragma unroll 1
      while (true) {
        if (advance(input, part, other)) {
          part = other;
          break;
        }
        if (advance(input, other, part)) {
          break;
        }
      }
    }
  }
};

template <int kRows, QuantizedFormat kFormat, class T>
__device__ __forceinline__ void multiply_format(const Product& p, int rows, const Ring& ring,
                                                Turn& turn, const Room<T>& room,
                                                const Place& place) {
  const Share share(p);
  FirstRows<T> first_rows;
  first_rows.template load<kFormat>(p, share);
  TilesOfBlock<kRows, kFormat, T> tiles{
      .ring = ring, .turn = turn, .share = share, .k = p.k, .chunk = p.chunk};
  if (share.all > 0) {
    tiles.load(share.rows_from(0), tiles.part);
  }
  place.wait();
  make_input<kRows>(p, rows, place.number - 1, room);
  const int row = kRows == 1 ? 0 : min(LanePart<kFormat>::row(), rows - 1);
  const T* const x = room.input() + row * tiles.k + LanePart<kFormat>::column();
#pragma unroll 1
  while (tiles.number < share.all) {  // once, unless there is no room for so many sums
    const int first = tiles.number;
    tiles.multiply(x, room.num_sums, room.sums);
    finish<kRows, kFormat>(p, share, rows, first, tiles.number, first_rows, place.number,
                           room.sums);
    if (tiles.number < share.all) {
      sync_computing();
    }
  }
}

// Weights are of that format or, whatever it is, numbers.
template <int kRows, QuantizedFormat kFormat, class T>
__device__ __forceinline__ void multiply(const Product& p, int rows, const Ring& ring, Turn& turn,
                                         const Room<T>& room, const Place& place) {
  if (p.normalised) {
    ask_gain(p, room.input() + rows * p.k);
  }
  if (kFormat == QuantizedFormat::none || p.format == QuantizedFormat::none) {
    multiply_format<kRows, QuantizedFormat::none>(p, rows, ring, turn, room, place);
  } else {
    multiply_format<kRows, kFormat>(p, rows, ring, turn, room, place);
  }
}

}  // namespace bloomery::resident
