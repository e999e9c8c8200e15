// Attention of one new token of each row. A block takes some keys of one sequence and one head. A
// key lies across a few lanes, 16 bytes in each; every such team of lanes has softmax sums of its
// own.
#pragma once

#include "ops/resident/words.cuh"

namespace bloomery::resident {

// Softmax sums of one query over some keys, kChannels of them here.
template <int kChannels>
struct Softmax {
  float maximum = -INFINITY, total = 0, sums[kChannels] = {};

  __device__ __forceinline__ void rescale(float larger) {
    const float factor = maximum == larger ? 1.0f : __expf(maximum - larger);
    maximum = larger;
    total *= factor;
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      sums[c] *= factor;
    }
  }
  template <class T>
  __device__ __forceinline__ void add(float score, const std::uint32_t (&value)[kChannels / 2]) {
    if (score > maximum) {
      rescale(score);
    }
    const float weight = __expf(score - maximum);
    total += weight;
#pragma unroll
    for (int c = 0; c < kChannels / 2; ++c) {
      const float2 two = unpacked<T>(value[c]);
      sums[2 * c] = fmaf(weight, two.x, sums[2 * c]);
      sums[2 * c + 1] = fmaf(weight, two.y, sums[2 * c + 1]);
    }
  }
  __device__ __forceinline__ void merge(const Softmax& other) {
    if (other.total > 0) {
      rescale(fmaxf(maximum, other.maximum));
      const float factor = __expf(other.maximum - maximum);
      total += other.total * factor;
#pragma unroll
      for (int c = 0; c < kChannels; ++c) {
        sums[c] += other.sums[c] * factor;
      }
    }
  }
  // Another one of eight channels, whose maximum is not larger.
  __device__ __forceinline__ void add_scaled(float2 statistics, float4 low, float4 high) {
    static_assert(kChannels == 8);
    const float factor = statistics.y > 0 ? __expf(statistics.x - maximum) : 0.0f;
    const float other[kChannels] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    total = fmaf(factor, statistics.y, total);
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      sums[c] = fmaf(factor, other[c], sums[c]);
    }
  }
  // With that of the lane whose number differs in these bits.
  __device__ __forceinline__ void merge_lanes(int bits) {
    Softmax other;
    other.maximum = __shfl_xor_sync(0xFFFFFFFFu, maximum, bits);
    other.total = __shfl_xor_sync(0xFFFFFFFFu, total, bits);
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      other.sums[c] = __shfl_xor_sync(0xFFFFFFFFu, sums[c], bits);
    }
    merge(other);
  }
};

// Among how many blocks so many keys are divided.
__device__ __forceinline__ int num_splits(const Attention& p, int keys) {
  return min(p.splits, (keys + kFewestKeys - 1) / kFewestKeys);
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
  for (int i = static_cast<int>(threadIdx.x); i < rows * p.pairs; i += kComputing) {
    const int row = i / p.pairs, pair = i % p.pairs;
    const double turns = double(p.positions[row]) * p.frequencies[pair] * 0.15915494309189535;
    const auto angle = static_cast<float>((turns - rint(turns)) * 6.283185307179586);
    float sine, cosine;
    sincosf(angle, &sine, &cosine);
    s.angles[row][pair] = {cosine * p.magnitude, sine * p.magnitude};
  }
}

// The new queries, keys and values, from memory or as words of the phase before.
template <class T>
struct NewHeads {
  const Attention& p;
  std::uint32_t phase;

  __device__ __forceinline__ T load(int at) const {
    return p.words != nullptr ? receive<T>(p.words + at, phase)
                              : __ldcg(static_cast<const T*>(p.qkv) + at);
  }
  // Those at two places, in one trip.
  __device__ __forceinline__ float2 load_pair(int first, int second) const {
    if (p.words == nullptr) {
      return {to_float(load(first)), to_float(load(second))};
    }
    std::uint32_t a, b;
    do {
      a = load_word(p.words + first);
      b = load_word(p.words + second);
    } while (!is_of(phase, a) || !is_of(phase, b));
    return {to_float(result_of<T>(a)), to_float(result_of<T>(b))};
  }
};

// Channel c of the head at `head`, turned.
template <class T>
__device__ __forceinline__ T turned(const Places& p, const NewHeads<T>& heads, int head, int c,
                                    const float2* angles) {
  if (c >= 2 * p.pairs) {
    return heads.load(head + c);
  }
  const bool first = p.interleaved ? c % 2 == 0 : c < p.pairs;
  const int distance = p.interleaved ? 1 : p.pairs;
  const int pair = p.interleaved ? c / 2 : first ? c : c - p.pairs;
  const float2 angle = angles[pair];
  const float2 x = heads.load_pair(head + c, first ? head + c + distance : head + c - distance);
  return from_float<T>(first ? x.x * angle.x - x.y * angle.y : x.x * angle.x + x.y * angle.y);
}

// Query, new key and its value into shared memory.
template <int kHeadDim, class T>
__device__ __forceinline__ void load_new(const Attention& p, const Places& places, int row,
                                         int group, int head_of_group, const float2* angles,
                                         std::uint32_t phase_before, AttentionShared<T>& s) {
  const NewHeads<T> heads{p, phase_before};
  const int first = (row * p.groups + group) * (p.heads_per_group + 2) * kHeadDim;
  for (int i = static_cast<int>(threadIdx.x); i < 3 * kHeadDim; i += kComputing) {
    const int which = i / kHeadDim, c = i % kHeadDim;
    const int number = which == 0 ? head_of_group : p.heads_per_group + which - 1;
    const int head = first + number * kHeadDim;
    const T x =
        which < 2 && p.turned ? turned(places, heads, head, c, angles) : heads.load(head + c);
    if (which == 0) {
      s.query[c] = p.scale * to_float(x);
    } else {
      s.fresh[which - 1][c] = x;
    }
  }
  sync_computing();
}

// How a block's threads divide keys: teams of lanes, each with kDepth keys at a time.
template <int kHeadDim>
struct Teams {
  static constexpr int kTeam = kHeadDim / kPackElements, kTeams = kComputing / kTeam;
  static constexpr int kDepth = kHeadDim == 128 ? 4 : 2;
  int channel = static_cast<int>(threadIdx.x) % kTeam * kPackElements;
  int team = static_cast<int>(threadIdx.x) / kTeam;
};

// One head of one row, over the keys of one split.
template <int kHeadDim, class T>
struct Unit {
  int row, head, split, group, head_of_group, count, begin, end;
  bool works;
  std::int64_t stride;
  T* keys;
  const std::int32_t* pages;  // of the row's slot; null: it has none

  __device__ Unit(const Attention& p, const CachePlaces& places, int number, const Shared& shared) {
    const int heads = p.groups * p.heads_per_group;
    split = number % p.splits;
    head = number / p.splits % heads;
    row = number / p.splits / heads;
    group = head / p.heads_per_group;
    head_of_group = head % p.heads_per_group;
    count = shared.counts[row];
    const int splits = num_splits(p, count);
    works = split < splits;
    const int each = works ? (count + splits - 1) / splits : 0;
    begin = min(split * each, count);
    end = min(begin + each, count);
    stride = std::int64_t{p.groups} * 2 * kHeadDim;
    const std::int64_t slot = shared.slots[row];
    pages = places.pages != nullptr ? places.pages + slot * places.pages_per_slot : nullptr;
    keys = static_cast<T*>(p.cache) + (pages != nullptr ? 0 : slot * p.capacity * stride) +
           group * 2 * kHeadDim;
  }

  __device__ __forceinline__ T* key(int number) const {
    const std::int64_t token =
        pages != nullptr ? (std::int64_t{pages[number >> kCachePageLog2]} << kCachePageLog2) +
                               (number & (kCachePage - 1))
                         : number;
    return keys + token * stride;
  }
};

constexpr int kPackWords = kPackElements / 2;
using PackWords = std::uint32_t[kPackWords];

__device__ __forceinline__ void set_words(PackWords& words, const uint4& from) {
  words[0] = from.x;
  words[1] = from.y;
  words[2] = from.z;
  words[3] = from.w;
}

template <int kHeadDim, class T>
struct KeyPacks {
  using Block = Teams<kHeadDim>;
  PackWords key[Block::kDepth], value[Block::kDepth];

  // Of keys that are in the cache: the new one is not.
  __device__ __forceinline__ void load(const Unit<kHeadDim, T>& unit, int first) {
    const Block at;
#pragma unroll
    for (int i = 0; i < Block::kDepth; ++i) {
      const int number = first + i * Block::kTeams + at.team;
      if (number < unit.end && number + 1 < unit.count) {
        const T* const from = unit.key(number) + at.channel;
        set_words(key[i], __ldcg(reinterpret_cast<const uint4*>(from)));
        set_words(value[i], __ldcg(reinterpret_cast<const uint4*>(from + kHeadDim)));
      }
    }
  }

  __device__ __forceinline__ void add(const Unit<kHeadDim, T>& unit, int first,
                                      const AttentionShared<T>& s,
                                      Softmax<kPackElements>& softmax) {
    const Block at;
    const float* const query = s.query + at.channel;
#pragma unroll
    for (int i = 0; i < Block::kDepth; ++i) {
      const int number = first + i * Block::kTeams + at.team;
      if (number + 1 == unit.count) {
        set_words(key[i], *reinterpret_cast<const uint4*>(&s.fresh[0][at.channel]));
        set_words(value[i], *reinterpret_cast<const uint4*>(&s.fresh[1][at.channel]));
      }
      float score = 0;
#pragma unroll
      for (int c = 0; c < kPackWords; ++c) {
        const float2 two = unpacked<T>(key[i][c]);
        score = fmaf(query[2 * c + 1], two.y, fmaf(query[2 * c], two.x, score));
      }
#pragma unroll
      for (int bits = Block::kTeam / 2; bits > 0; bits /= 2) {
        score += __shfl_xor_sync(0xFFFFFFFFu, score, bits);
      }
      if (number < unit.end) {
        softmax.template add<T>(score, value[i]);
      }
    }
  }
};

// Puts the warps of the block together, as partial number `place`.
template <int kHeadDim, class T>
__device__ __forceinline__ void write_partial(const Attention& p, int place,
                                              const Softmax<kPackElements>& softmax,
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
  if (threadIdx.x < kHeadDim) {
    const int c = static_cast<int>(threadIdx.x);
    float maximum = -INFINITY, total = 0, sum = 0;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) {
      maximum = fmaxf(maximum, s.partials[i][kHeadDim]);
    }
#pragma unroll
    for (int i = 0; i < kWarps; ++i) {
      const float part = s.partials[i][kHeadDim + 1];
      const float factor = part > 0 ? __expf(s.partials[i][kHeadDim] - maximum) : 0.0f;
      total = fmaf(factor, part, total);
      sum = fmaf(factor, s.partials[i][c], sum);
    }
    p.sums[place * kHeadDim + c] = sum;
    if (c == 0) {
      p.statistics[2 * place] = maximum;
      p.statistics[2 * place + 1] = total;
    }
  }
}

// The keys in the cache do not depend on this step: the first ones are on their way while the block
// waits for the new one and the query.
template <int kHeadDim, class T>
__device__ __noinline__ void attend_heads(const Attention& p, const Places& places, int rows,
                                          const Shared& shared, AttentionShared<T>& s,
                                          Place place) {
  const int units = rows * p.groups * p.heads_per_group * p.splits;
  bool waited = false;
  for (int number = static_cast<int>(blockIdx.x); number < units;
       number += static_cast<int>(gridDim.x)) {
    const Unit<kHeadDim, T> unit(p, places.cache, number, shared);
    KeyPacks<kHeadDim, T> packs;
    packs.load(unit, unit.begin);
    if (!waited) {
      place.wait();
      waited = true;
    }
    if (!unit.works) {
      continue;
    }
    sync_computing();  // before this, shared memory may still be read
    load_new<kHeadDim>(p, places, unit.row, unit.group, unit.head_of_group, shared.angles[unit.row],
                       place.number - 1, s);
    if (unit.end == unit.count && unit.head_of_group == 0) {
      for (int c = static_cast<int>(threadIdx.x); c < 2 * kHeadDim; c += kComputing) {
        unit.key(unit.count - 1)[c] = s.fresh[c / kHeadDim][c % kHeadDim];
      }
    }
    Softmax<kPackElements> softmax;
    constexpr int kStep = Teams<kHeadDim>::kTeams * Teams<kHeadDim>::kDepth;
    packs.add(unit, unit.begin, s, softmax);
    for (int first = unit.begin + kStep; first < unit.end; first += kStep) {
      packs.load(unit, first);
      packs.add(unit, first, s, softmax);
    }
#pragma unroll
    for (int bits = Teams<kHeadDim>::kTeam; bits < kLanes; bits *= 2) {
      softmax.merge_lanes(bits);
    }
    const int head = unit.row * p.groups * p.heads_per_group + unit.head;
    write_partial<kHeadDim>(p, head * p.splits + unit.split, softmax, s);
  }
  if (!waited) {
    place.wait();
  }
}

template <class T>
__device__ __forceinline__ void attend(const Attention& p, const Places& places, int rows,
                                       const Room<T>& room, const Place& place) {
  const Shared& shared = room.shared;
  AttentionShared<T>& s = room.attention();
  switch (p.head_dim) {
    case 32:
      return attend_heads<32>(p, places, rows, shared, s, place);
    case 64:
      return attend_heads<64>(p, places, rows, shared, s, place);
    case 128:
      return attend_heads<128>(p, places, rows, shared, s, place);
    default:
      return attend_heads<256>(p, places, rows, shared, s, place);
  }
}

// Puts the splits of all heads together, as the input of the product behind: eight channels of a
// head for a thread at a time.
template <class T>
__device__ __noinline__ void combine(const Attention& p, int rows, const Shared& shared, T* out,
                                     T* input) {
  constexpr int kAtOnce = 5;
  const int heads = p.groups * p.heads_per_group, packs = p.head_dim / kPackElements;
  for (int i = static_cast<int>(threadIdx.x); i < rows * heads * packs; i += kComputing) {
    const int head = i / packs, channel = i % packs * kPackElements;  // of all rows
    const int splits = num_splits(p, shared.counts[rows == 1 ? 0 : head / heads]);
    Softmax<kPackElements> all;
    for (int first = 0; first < splits; first += kAtOnce) {
      float2 statistics[kAtOnce];
      float4 low[kAtOnce], high[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        statistics[j] = {-INFINITY, 0.0f};
        low[j] = high[j] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (first + j < splits) {
          const int place = head * p.splits + first + j;
          const auto* const sums =
              reinterpret_cast<const float4*>(p.sums + place * p.head_dim + channel);
          statistics[j] = __ldcg(reinterpret_cast<const float2*>(p.statistics) + place);
          low[j] = __ldcg(sums);
          high[j] = __ldcg(sums + 1);
        }
      }
      float larger = all.maximum;
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        larger = fmaxf(larger, statistics[j].x);
      }
      all.rescale(larger);
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        all.add_scaled(statistics[j], low[j], high[j]);
      }
    }
    const float factor = all.total > 0 ? 1.0f / all.total : 0.0f;
    EightOf<T> result;
#pragma unroll
    for (int c = 0; c < kPackElements; ++c) {
      result[c] = from_float<T>(all.sums[c] * factor);
    }
    const int at = head * p.head_dim + channel;
    store_pack(input + at, result);
    if (blockIdx.x == 0) {
      store_pack(out + at, result);
    }
  }
}

}  // namespace bloomery::resident
