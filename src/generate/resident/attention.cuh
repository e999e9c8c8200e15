// Attention of one new token of each row. A block takes some keys of one sequence and one head. A
// key lies across a few lanes, 16 bytes in each.
#pragma once

#include "generate/resident/flagged_packets.cuh"

namespace bloomery::resident {

constexpr float kNoScore = -1e30f;  // below all scores, and its distances to them are numbers

constexpr int kPackWords = kPackElements / 2;
using PackWords = std::uint32_t[kPackWords];

__device__ __forceinline__ void set_words(PackWords& words, const uint4& from) {
  words[0] = from.x;
  words[1] = from.y;
  words[2] = from.z;
  words[3] = from.w;
}

// What all attention of the launch has of its rows; cosines and sines as the rotary kernel computes
// them.
__device__ inline void load_places(const Places& p, int rows, Shared& s) {
  if (p.cache.slots == nullptr) {
    return;
  }
  if (static_cast<int>(threadIdx.x) < rows) {
    s.slots[threadIdx.x] = p.cache.slots[threadIdx.x];
    s.counts[threadIdx.x] = p.cache.counts[threadIdx.x] > 0 ? p.cache.lengths[threadIdx.x] + 1 : 0;
  }
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < rows * p.pairs; i += kComputing) {
    const int row = i / p.pairs, pair = i % p.pairs;
    const double turns = double(p.positions[row]) * p.frequencies[pair] * 0.15915494309189535;
    const auto angle = static_cast<float>((turns - rint(turns)) * 6.283185307179586);
    float sine, cosine;
    sincosf(angle, &sine, &cosine);
    s.angles[row][pair] = {cosine * p.magnitude, sine * p.magnitude};
  }
}

__device__ inline int num_units(const Places& p, int rows) {
  return rows * p.groups * p.heads_per_group * p.splits;
}

// Unit `number`, for all threads behind a barrier. Of a row without a new token no split has keys,
// and the first one has the result, zero.
__device__ __noinline__ void set_unit(const Places& p, int number, Shared& shared) {
  Unit& unit = shared.unit;
  const int heads = p.groups * p.heads_per_group;
  unit.split = number % p.splits;
  unit.head = number / p.splits;
  unit.row = unit.head / heads;
  unit.group = unit.head % heads / p.heads_per_group;
  unit.head_of_group = unit.head % heads % p.heads_per_group;
  unit.count = shared.counts[unit.row];
  unit.splits = max(1, min(p.splits, (unit.count + kFewestKeys - 1) / kFewestKeys));
  const int each = (unit.count + unit.splits - 1) / unit.splits;
  unit.begin = min(unit.split * each, unit.count);
  unit.end = min(unit.begin + each, unit.count);
  const std::int64_t slot = shared.slots[unit.row];
  unit.pages = p.cache.pages != nullptr ? p.cache.pages + slot * p.cache.pages_per_slot : nullptr;
  unit.keys = (unit.pages != nullptr ? 0 : slot * p.capacity * p.groups) * 2 * p.head_dim +
              unit.group * 2 * p.head_dim;
}

// Where key `number` begins.
__device__ __forceinline__ std::int64_t key_place(const Unit& unit, int stride, int number) {
  const std::int64_t token =
      unit.pages == nullptr
          ? number
          : (std::int64_t{unit.pages[number >> kCachePageLog2]} << kCachePageLog2) +
                (number & (kCachePage - 1));
  return unit.keys + token * stride;
}

// Channel c of a head, turned.
template <class T>
__device__ __forceinline__ T turned(const Places& p, const T* head, int c, const float2* angles) {
  if (c >= 2 * p.pairs) {
    return head[c];
  }
  const bool first = p.interleaved ? c % 2 == 0 : c < p.pairs;
  const int distance = p.interleaved ? 1 : p.pairs;
  const int pair = p.interleaved ? c / 2 : first ? c : c - p.pairs;
  const float2 angle = angles[pair];
  const float x = to_float(head[c]), other = to_float(head[first ? c + distance : c - distance]);
  return from_float<T>(first ? x * angle.x - other * angle.y : x * angle.x + other * angle.y);
}

// Query, new key and its value into shared memory.
template <int kHeadDim, class T>
__device__ __forceinline__ void load_new(const Attention& p, const Places& places,
                                         const Shared& shared, std::uint32_t phase_before,
                                         AttentionShared<T>& s) {
  constexpr int kFours = kHeadDim / kFour;
  const Unit& unit = shared.unit;
  const int thread = static_cast<int>(threadIdx.x), which = thread / kFours;
  const bool turns = places.pairs > 0;
  if (which < 3) {
    const int c = thread % kFours * kFour;
    const int heads = (unit.row * places.groups + unit.group) * (places.heads_per_group + 2);
    const int head = which == 0 ? unit.head_of_group : places.heads_per_group + which - 1;
    const Results<T> results{static_cast<const T*>(p.qkv), p.words, phase_before};
    uint2 four[1];
    results.load((heads + head) * kHeadDim + c, 0, 0, four);
    if (turns && which < 2) {
      *reinterpret_cast<uint2*>(&s.arrived[which][c]) = four[0];
    } else if (which == 0) {
      const float4 x = unpacked<T>(four[0]);
      *reinterpret_cast<float4*>(&s.query[c]) = {x.x * places.scale, x.y * places.scale,
                                                 x.z * places.scale, x.w * places.scale};
    } else {
      *reinterpret_cast<uint2*>(&s.fresh[which - 1][c]) = four[0];
    }
  }
  wait_for_copies();
  sync_computing();
  if (turns) {
#pragma unroll 1
    for (int i = thread; i < 2 * kHeadDim; i += kComputing) {
      const int c = i % kHeadDim;
      const T x = turned(places, s.arrived[i / kHeadDim], c, shared.angles[unit.row]);
      if (i < kHeadDim) {
        s.query[c] = places.scale * to_float(x);
      } else {
        s.fresh[0][c] = x;
      }
    }
    sync_computing();
  }
}

// How a block's threads divide keys: teams of lanes, each with kDepth keys at a time.
template <int kHeadDim>
struct Teams {
  static constexpr int kTeam = kHeadDim / kPackElements, kTeams = kComputing / kTeam;
  static constexpr int kDepth = kHeadDim == 128 ? 4 : 2;
  int channel = static_cast<int>(threadIdx.x) % kTeam * kPackElements;
  int team = static_cast<int>(threadIdx.x) / kTeam;
};

template <int kHeadDim, class T>
struct KeyPacks {
  using Block = Teams<kHeadDim>;
  PackWords key[Block::kDepth], value[Block::kDepth];

  // Of keys that are in the cache: the new one is not.
  __device__ __forceinline__ void load(const Unit& unit, const T* cache, int stride, int first) {
    const Block at;
#pragma unroll
    for (int i = 0; i < Block::kDepth; ++i) {
      const int number = first + i * Block::kTeams + at.team;
      set_words(key[i], {0, 0, 0, 0});
      set_words(value[i], {0, 0, 0, 0});
      if (number < unit.end && number + 1 < unit.count) {
        const T* const from = cache + key_place(unit, stride, number) + at.channel;
        set_words(key[i], __ldcg(reinterpret_cast<const uint4*>(from)));
        set_words(value[i], __ldcg(reinterpret_cast<const uint4*>(from + kHeadDim)));
      }
    }
  }
};

// Softmax sums of one query: the maximum of the keys of a warp, and of its lane's keys the total of
// their weights and the sums of their values.
struct Softmax {
  float maximum = kNoScore, total = 0, sums[kPackElements] = {};

  template <int kHeadDim, class T>
  __device__ __forceinline__ void add(KeyPacks<kHeadDim, T>& packs, const Unit& unit, int first,
                                      const AttentionShared<T>& s) {
    using Block = Teams<kHeadDim>;
    const Block at;
    const auto* const four = reinterpret_cast<const float4*>(s.query + at.channel);
    const float4 low = four[0], high = four[1];
    float scores[Block::kDepth], larger = maximum;
#pragma unroll
    for (int i = 0; i < Block::kDepth; ++i) {
      const int number = first + i * Block::kTeams + at.team;
      if (number + 1 == unit.count) {
        set_words(packs.key[i], *reinterpret_cast<const uint4*>(&s.fresh[0][at.channel]));
        set_words(packs.value[i], *reinterpret_cast<const uint4*>(&s.fresh[1][at.channel]));
      }
      const float2 a = unpacked<T>(packs.key[i][0]), b = unpacked<T>(packs.key[i][1]);
      const float2 c = unpacked<T>(packs.key[i][2]), d = unpacked<T>(packs.key[i][3]);
      scores[i] = fmaf(low.x, a.x, low.y * a.y) + fmaf(low.z, b.x, low.w * b.y) +
                  (fmaf(high.x, c.x, high.y * c.y) + fmaf(high.z, d.x, high.w * d.y));
    }
#pragma unroll
    for (int bits = Block::kTeam / 2; bits > 0; bits /= 2) {
#pragma unroll
      for (int i = 0; i < Block::kDepth; ++i) {
        scores[i] += __shfl_xor_sync(0xFFFFFFFFu, scores[i], bits);
      }
    }
#pragma unroll
    for (int i = 0; i < Block::kDepth; ++i) {
      const int number = first + i * Block::kTeams + at.team;
      scores[i] = number < unit.end ? scores[i] : kNoScore;
      larger = fmaxf(larger, scores[i]);
    }
#pragma unroll
    for (int bits = Block::kTeam; bits < kLanes; bits *= 2) {
      larger = fmaxf(larger, __shfl_xor_sync(0xFFFFFFFFu, larger, bits));
    }
    const float factor = __expf(maximum - larger);
    maximum = larger;
    total *= factor;
#pragma unroll
    for (int c = 0; c < kPackElements; ++c) {
      sums[c] *= factor;
    }
#pragma unroll
    for (int i = 0; i < Block::kDepth; ++i) {
      const int number = first + i * Block::kTeams + at.team;
      const float weight = number < unit.end ? __expf(scores[i] - larger) : 0.0f;
      total += weight;
#pragma unroll
      for (int c = 0; c < kPackWords; ++c) {
        const float2 two = unpacked<T>(packs.value[i][c]);
        sums[2 * c] = fmaf(weight, two.x, sums[2 * c]);
        sums[2 * c + 1] = fmaf(weight, two.y, sums[2 * c + 1]);
      }
    }
  }

  // Of all keys of the warp.
  template <int kTeam>
  __device__ __forceinline__ void add_lanes() {
#pragma unroll
    for (int bits = kTeam; bits < kLanes; bits *= 2) {
      total += __shfl_xor_sync(0xFFFFFFFFu, total, bits);
#pragma unroll
      for (int c = 0; c < kPackElements; ++c) {
        sums[c] += __shfl_xor_sync(0xFFFFFFFFu, sums[c], bits);
      }
    }
  }
};

// One channel of the softmax sums of some keys.
struct ChannelSum {
  float sum = 0, maximum = kNoScore, total = 0;

  __device__ __forceinline__ void add(float other_sum, float other_maximum, float other_total) {
    const float larger = fmaxf(maximum, other_maximum);
    const float factor = __expf(maximum - larger), other = __expf(other_maximum - larger);
    sum = fmaf(sum, factor, other_sum * other);
    total = fmaf(total, factor, other_total * other);
    maximum = larger;
  }
};

// Channel c (a thread's number) of what the warps of this block found.
template <int kHeadDim, class T>
__device__ __forceinline__ ChannelSum put_warps_together(const Softmax& softmax,
                                                         AttentionShared<T>& s) {
  constexpr int kTeam = kHeadDim / kPackElements;
  const int warp = static_cast<int>(threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  if (lane < kTeam) {
#pragma unroll
    for (int c = 0; c < kPackElements; ++c) {
      s.partials[warp][lane * kPackElements + c] = softmax.sums[c];
    }
  }
  if (lane == 0) {
    s.partials[warp][kHeadDim] = softmax.maximum;
    s.partials[warp][kHeadDim + 1] = softmax.total;
  }
  sync_computing();
  ChannelSum all;
  if (threadIdx.x < kHeadDim) {
    float maxima[kWarps];
#pragma unroll
    for (int i = 0; i < kWarps; ++i) {
      maxima[i] = s.partials[i][kHeadDim];
      all.maximum = fmaxf(all.maximum, maxima[i]);
    }
#pragma unroll
    for (int i = 0; i < kWarps; ++i) {
      const float factor = __expf(maxima[i] - all.maximum);
      all.total = fmaf(factor, s.partials[i][kHeadDim + 1], all.total);
      all.sum = fmaf(factor, s.partials[i][threadIdx.x], all.sum);
    }
  }
  return all;
}

// Adds what the other blocks of a head found: several of them are on their way at a time.
__device__ __forceinline__ void add_splits(const uint4* partials, int splits, int distance,
                                           std::uint32_t phase, ChannelSum& all) {
  constexpr int kAtOnce = 4;
#pragma unroll 1
  for (int first = 1; first < splits; first += kAtOnce) {
    uint4 parts[kAtOnce];
    bool there;
    do {
      there = true;
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        if (first + j < splits) {
          parts[j] = load_whole(partials + (first + j) * distance);
        }
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        there &= first + j >= splits || parts[j].w == phase;
      }
    } while (!there);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      if (first + j < splits) {
        all.add(__uint_as_float(parts[j].x), __uint_as_float(parts[j].y),
                __uint_as_float(parts[j].z));
      }
    }
  }
}

// Sends channel c of a split to the block that has the first one, which has the result.
template <int kHeadDim, class T>
__device__ __forceinline__ void put_splits_together(const Attention& p, const Places& places,
                                                    const Unit& unit, ChannelSum all,
                                                    std::uint32_t phase) {
  if (threadIdx.x >= kHeadDim) {
    return;
  }
  const int c = static_cast<int>(threadIdx.x);
  uint4* const partials =
      static_cast<uint4*>(places.partials) + unit.head * places.splits * kHeadDim + c;
  if (unit.split > 0) {
    return send_whole(partials + unit.split * kHeadDim,
                      {__float_as_uint(all.sum), __float_as_uint(all.maximum),
                       __float_as_uint(all.total), phase});
  }
  add_splits(partials, unit.splits, kHeadDim, phase, all);
  const T result = from_float<T>(all.total > 0 ? __fdividef(all.sum, all.total) : 0.0f);
  const int at = unit.head * kHeadDim + c;
  if (p.result_words != nullptr) {
    send(p.result_words + at, result, phase);
  }
  static_cast<T*>(p.out)[at] = result;
}

// The keys in the cache do not depend on this step: the first ones are on their way while the block
// waits for the new one and the query.
template <int kHeadDim, class T>
__device__ __forceinline__ void attend_unit(const Attention& p, const Places& places,
                                            const Shared& shared, AttentionShared<T>& s,
                                            const Place& place) {
  const Unit& unit = shared.unit;
  const int stride = places.groups * 2 * kHeadDim;
  T* const cache = static_cast<T*>(p.cache);
  KeyPacks<kHeadDim, T> packs;
  packs.load(unit, cache, stride, unit.begin);
  place.wait();
  load_new<kHeadDim>(p, places, shared, place.number - 1, s);
  Softmax softmax;
  constexpr int kStep = Teams<kHeadDim>::kTeams * Teams<kHeadDim>::kDepth;
#pragma unroll 1
  for (int first = unit.begin;;) {
    softmax.add(packs, unit, first, s);
    first += kStep;
    if (first >= unit.end) {
      break;
    }
    packs.load(unit, cache, stride, first);
  }
  softmax.template add_lanes<Teams<kHeadDim>::kTeam>();
  const ChannelSum all = put_warps_together<kHeadDim>(softmax, s);
  put_splits_together<kHeadDim, T>(p, places, unit, all, place.number);
  if (unit.end == unit.count && unit.count > 0 && unit.head_of_group == 0) {
    T* const key = cache + key_place(unit, stride, unit.count - 1);
#pragma unroll 1
    for (int c = static_cast<int>(threadIdx.x); c < 2 * kHeadDim; c += kComputing) {
      key[c] = s.fresh[c / kHeadDim][c % kHeadDim];
    }
  }
}

template <class T>
__device__ __forceinline__ void attend(const Attention& p, const Places& places, int rows,
                                       const Room<T>& room, const Place& place) {
  AttentionShared<T>& s = room.attention();
  Shared& shared = room.shared;
  const int units = num_units(places, rows), blocks = static_cast<int>(gridDim.x);
  bool works = false;
#pragma unroll 1
  for (int number = static_cast<int>(blockIdx.x); number < units; number += blocks) {
    if (units > blocks) {  // else it is set
      if (threadIdx.x == 0) {
        set_unit(places, number, shared);
      }
      sync_computing();
    }
    if (shared.unit.split >= shared.unit.splits) {
      break;
    }
    works = true;
    switch (places.head_dim) {
      case 32:
        attend_unit<32>(p, places, shared, s, place);
        break;
      case 64:
        attend_unit<64>(p, places, shared, s, place);
        break;
      case 128:
        attend_unit<128>(p, places, shared, s, place);
        break;
      default:
        attend_unit<256>(p, places, shared, s, place);
    }
    sync_computing();  // before this, shared memory may still be read
  }
  if (!works) {
    place.wait();
    wait_for_copies();
    sync_computing();
  }
}

}  // namespace bloomery::resident
