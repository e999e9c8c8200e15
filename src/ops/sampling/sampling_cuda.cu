// One block per row. Scores become 32-bit keys with their order. What top-k, top-p and the draw
// look for is a place in the order (likelier first, then by number), found bit by bit from counts
// or masses of the elements at or above a key. Masses are integers, so that their sums do not
// depend on the order of the threads. Candidates are few as a rule: a bound below which none can be
// is cheap to have, and what is above it goes to a list in shared memory, where each is compared
// with each if they are not more than threads. Else the list, or all of the row, is searched.
#include <bit>

#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/common/fast_math.h"
#include "ops/sampling/sampling.h"
#include "ops/sampling/token_choice.h"

namespace bloomery {
namespace {

constexpr int kThreads = 1024, kWarps = kThreads / kWarpSize;
constexpr int kListLength = 2048;
constexpr int kPivots = 16;           // bounds of top-p: e^-1 to e^-16 of the largest probability
constexpr float kMassUnit = 0x1p44f;  // of weights from 0 to 1: 2^19 of them fit 63 bits

using Mass = unsigned long long;

struct Shared {
  Mass sums[kWarps];
  float scratch[kWarps];
  std::uint32_t list_keys[kListLength];
  std::int32_t list_tokens[kListLength];
  Mass list_masses[kThreads];
  int list_length;
  int found;
};

__device__ __forceinline__ std::uint32_t to_key(float score) {
  const std::uint32_t bits = __float_as_uint(score);
  return bits ^ (bits >> 31 != 0 ? 0xFFFFFFFFu : 0x80000000u);
}
__device__ __forceinline__ float to_score(std::uint32_t key) {
  return __uint_as_float(key ^ (key >> 31 != 0 ? 0x80000000u : 0xFFFFFFFFu));
}
__device__ __forceinline__ Mass mass_of(float score) {
  return __float2ull_rn(fast_exp(score) * kMassUnit);
}

// Sums over the block, the same in each thread; the scratch then holds those of its warps.
struct Block {
  Mass* scratch;
  __device__ __forceinline__ Mass sum(Mass value) const {
    value = warp_sum(value);
    __syncthreads();
    if (threadIdx.x % kWarpSize == 0) {
      scratch[threadIdx.x / kWarpSize] = value;
    }
    __syncthreads();
    return warp_sum(scratch[threadIdx.x % kWarps]);
  }
};
// random_uniform(), for the device.
__device__ double uniform_of(RandomKey key, std::uint64_t index) {
  const RandomBlock bits = philox(
      key, {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 0u, 0u});
  return static_cast<double>((std::uint64_t{bits[0]} << 32 | bits[1]) >> 11) * 0x1.0p-53;
}

// A block's largest value, in every thread.
template <class T>
__device__ T block_largest(T value, T* scratch) {
  value = warp_max(value);
  __syncthreads();
  if (threadIdx.x % kWarpSize == 0) {
    scratch[threadIdx.x / kWarpSize] = value;
  }
  __syncthreads();
  return warp_max(scratch[threadIdx.x % kWarps]);
}

// The logits of a row and what becomes of them. Threads take packs in turn.
template <int kPack, class T>
struct Row {
  const T* logits;
  const std::uint32_t* occurred;  // or null
  const float* biases;            // or null
  int banned;                     // or -1
  int vocabulary;
  float penalty, temperature, largest = 0;  // score before the temperature

  __device__ __forceinline__ float adjusted(int token, float logit, bool has_occurred) const {
    float x = has_occurred ? penalized(logit, penalty) : logit;
    x = biases != nullptr ? x + biases[token] : x;
    return token == banned ? kBanned : x;
  }

  // f(token, logit, logit with penalty and bias). Several packs of a thread are on their way at a
  // time: one block has to hide the latency of memory by itself.
  template <class Function>
  __device__ __forceinline__ void for_each(Function&& f) const {
    constexpr int kAtOnce = 4, kStep = kThreads * kPack;
    for (int begin = threadIdx.x * kPack; begin < vocabulary; begin += kAtOnce * kStep) {
      Pack<T, kPack> packs[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (begin + i * kStep < vocabulary) {
          packs[i] = load_pack<kPack>(logits + begin + i * kStep);
        }
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (begin + i * kStep < vocabulary) {
          take(begin + i * kStep, packs[i], f);
        }
      }
    }
  }
  template <class Function>
  __device__ __forceinline__ void take(int first, const Pack<T, kPack>& pack, Function&& f) const {
    const std::uint32_t bits = occurred != nullptr ? occurred[first / 32] >> first % 32 : 0;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      if (first + j < vocabulary) {
        const float logit = to_float(pack[j]);
        f(first + j, logit, adjusted(first + j, logit, (bits >> j & 1) != 0));
      }
    }
  }
  __device__ __forceinline__ float score(float with_penalty) const {
    return (with_penalty - largest) / temperature;
  }
  // f(key, token)
  template <class Function>
  __device__ __forceinline__ void for_keys(Function&& f) const {
    for_each([&](int token, float, float x) { f(to_key(score(x)), token); });
  }
};

// The candidates in shared memory.
struct List {
  const Shared& shared;
  template <class Function>
  __device__ __forceinline__ void for_keys(Function&& f) const {
    for (int i = threadIdx.x; i < shared.list_length; i += kThreads) {
      f(shared.list_keys[i], shared.list_tokens[i]);
    }
  }
};

// The largest v for which measure(v), summed over the block, is at least `target`; 0 if there is
// none. The sum falls with v.
template <class Measure>
__device__ std::uint32_t search(const Block& block, Mass target, Measure&& measure) {
  std::uint32_t found = 0;
  for (int bit = 31; bit >= 0; --bit) {
    const std::uint32_t next = found | 1u << bit;
    if (block.sum(measure(next)) >= target) {
      found = next;
    }
  }
  return found;
}

template <class Elements>
__device__ Mass mass_from(const Elements& elements, std::uint32_t least) {
  Mass sum = 0;
  elements.for_keys([&](std::uint32_t key, int) {
    if (key >= least) {
      sum += mass_of(to_score(key));
    }
  });
  return sum;
}

template <class Elements>
__device__ Mass count_from(const Elements& elements, std::uint32_t least) {
  Mass sum = 0;
  elements.for_keys([&](std::uint32_t key, int) { sum += key >= least ? 1 : 0; });
  return sum;
}

// Where the mass of likelier elements first reaches `target`: the key, and how many of the
// elements with that key it takes.
struct Place {
  std::uint32_t key;
  Mass ties, above;  // above: the mass before the key
};
template <class Elements>
__device__ Place find_place(const Block& block, const Elements& elements, Mass target) {
  const std::uint32_t key =
      search(block, target, [&](std::uint32_t v) { return mass_from(elements, v); });
  const Mass above = block.sum(mass_from(elements, key + 1));  // no key is the last
  const Mass each = mass_of(to_score(key)), needed = target > above ? target - above : 0;
  return {key, each > 0 ? max((needed + each - 1) / each, Mass{1}) : Mass{1}, above};
}

// The n-th token, from 1, of those with this key.
template <class Elements>
__device__ int nth_token(const Block& block, const Elements& elements, std::uint32_t key, Mass n) {
  return static_cast<int>(~search(block, n, [&](std::uint32_t v) {
    Mass sum = 0;
    elements.for_keys([&](std::uint32_t k, int token) {
      sum += k == key && ~static_cast<std::uint32_t>(token) >= v ? 1 : 0;
    });
    return sum;
  }));
}

// The key of the k-th element.
template <class Elements>
__device__ std::uint32_t kth_key(const Block& block, const Elements& elements, std::int64_t k) {
  return search(block, static_cast<Mass>(k),
                [&](std::uint32_t v) { return count_from(elements, v); });
}

struct Drawing {
  std::int64_t top_k;  // 0: all
  double top_p;        // 1: all
  double uniform;
  float least;  // score: of min-p; -inf: all
  Mass mass;    // of the whole row, where there is no top-k
};

// A draw in the order of probability.
template <class Elements>
__device__ int draw_in_order(const Block& block, const Elements& elements, const Drawing& d) {
  Mass mass = d.mass;
  if (d.top_k > 0) {
    mass = block.sum(mass_from(elements, kth_key(block, elements, d.top_k)));
  }
  if (d.top_p < 1) {
    const auto wanted = static_cast<Mass>(ceil(d.top_p * static_cast<double>(mass)));
    const Place last = find_place(block, elements, wanted);
    mass = min(mass, last.above + last.ties * mass_of(to_score(last.key)));
  }
  if (d.least > -INFINITY) {
    mass = min(mass, block.sum(mass_from(elements, to_key(d.least))));
  }
  const Mass target = static_cast<Mass>(d.uniform * static_cast<double>(mass)) + 1;
  const Place place = find_place(block, elements, min(target, mass));
  return nth_token(block, elements, place.key, place.ties);
}

// The same for as many elements as threads at most: each thread finds what comes before its
// element.
__device__ int draw_from_short_list(const Block& block, const Drawing& d, Shared& shared) {
  const int count = shared.list_length, own = static_cast<int>(threadIdx.x);
  const std::uint32_t key = own < count ? shared.list_keys[own] : 0;
  const std::int32_t token = own < count ? shared.list_tokens[own] : 0;
  const Mass mass = own < count ? mass_of(to_score(key)) : 0;
  shared.list_masses[own] = mass;
  __syncthreads();
  int num_larger = 0;
  Mass above = 0;
  for (int i = 0; own < count && i < count; ++i) {
    const std::uint32_t other = shared.list_keys[i];
    num_larger += other > key ? 1 : 0;
    above +=
        other > key || (other == key && shared.list_tokens[i] < token) ? shared.list_masses[i] : 0;
  }
  bool kept = own < count && (d.top_k == 0 || num_larger < d.top_k);
  Mass all = d.top_k == 0 ? d.mass : block.sum(kept ? mass : 0);
  if (d.top_p < 1) {
    kept = kept && above < static_cast<Mass>(ceil(d.top_p * static_cast<double>(all)));
    all = block.sum(kept ? mass : 0);
  }
  if (d.least > -INFINITY) {
    kept = kept && to_score(key) >= d.least;
    all = block.sum(kept ? mass : 0);
  }
  const Mass left = min(static_cast<Mass>(d.uniform * static_cast<double>(all)), all - 1);
  if (kept && above <= left && left - above < mass) {
    shared.found = token;
  }
  __syncthreads();
  return shared.found;
}

// A draw in the order of tokens, of those with a score from `least` on: warps have ranges of them.
template <class RowOf>
__device__ int draw_by_number(const RowOf& row, double uniform, float least, Shared& shared) {
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int range = (row.vocabulary + kWarps - 1) / kWarps;
  const int begin = min(warp * range, row.vocabulary), end = min(begin + range, row.vocabulary);
  const auto mass = [&](int token) {
    if (token >= end) {
      return Mass{0};
    }
    const float logit = to_float(row.logits[token]);
    const bool has = row.occurred != nullptr && (row.occurred[token / 32] >> token % 32 & 1) != 0;
    const float score = row.score(row.adjusted(token, logit, has));
    return score >= least ? mass_of(score) : Mass{0};
  };
  Mass sum = 0;
  for (int token = begin + lane; token < end; token += kWarpSize) {
    sum += mass(token);
  }
  const Mass total = Block{shared.sums}.sum(sum);
  Mass target = min(static_cast<Mass>(uniform * static_cast<double>(total)) + 1, total);
  for (int i = 0; i < warp; ++i) {
    target -= min(target, shared.sums[i]);  // 0: it lies before this warp
  }
  if (target > 0 && target <= shared.sums[warp]) {
    for (int first = begin; first < end; first += kWarpSize) {
      Mass before = mass(first + lane);
      for (int offset = 1; offset < kWarpSize; offset *= 2) {
        const Mass other = __shfl_up_sync(0xFFFFFFFFu, before, offset);
        before += lane >= offset ? other : 0;
      }
      const unsigned reached = __ballot_sync(0xFFFFFFFFu, before >= target);
      if (reached != 0) {
        shared.found = first + __ffs(static_cast<int>(reached)) - 1;
        break;
      }
      target -= __shfl_sync(0xFFFFFFFFu, before, kWarpSize - 1);
    }
  }
  __syncthreads();
  return shared.found;
}

// A score before the temperature that at least top_k elements reach: that many threads have an
// element at or above it. A little less, since division may make equals of what was not.
template <class RowOf>
__device__ float top_k_bound(const RowOf& row, float thread_best, std::int64_t top_k) {
  const std::uint32_t key = to_key(thread_best);
  std::uint32_t found = 0;
  for (int bit = 31; bit >= 0; --bit) {
    const std::uint32_t next = found | 1u << bit;
    if (__syncthreads_count(key >= next ? 1 : 0) >= top_k) {
      found = next;
    }
  }
  const float bound = to_score(found);
  return bound - (row.largest - bound) * 1e-6f;
}

// A score before the temperature above which there is more than top_p of the mass; -inf if no pivot
// is low enough.
template <class RowOf>
__device__ float top_p_bound(const RowOf& row, double top_p, Shared& shared) {
  float sums[kPivots + 1] = {};  // the last: of all
  const float factor = 1 / row.temperature;
  row.for_each([&](int, float, float x) {
    const float score = (x - row.largest) * factor, weight = __expf(score);
#pragma unroll
    for (int i = 0; i < kPivots; ++i) {
      sums[i] += score >= -static_cast<float>(i + 1) ? weight : 0.0f;
    }
    sums[kPivots] += weight;
  });
  const float total = block_sum(sums[kPivots], shared.scratch);
  float bound = -INFINITY;
#pragma unroll
  for (int i = kPivots - 1; i >= 0; --i) {
    if (block_sum(sums[i], shared.scratch) >= total * (static_cast<float>(top_p) + 1e-3f)) {
      bound = row.largest - (static_cast<float>(i + 1) + 1e-3f) * row.temperature;
    }
  }
  return bound;
}

// Puts the elements from the bound on into the list. False: they are too many.
template <class RowOf>
__device__ bool gather(const RowOf& row, float bound, Shared& shared) {
  __syncthreads();
  if (threadIdx.x == 0) {
    shared.list_length = 0;
  }
  __syncthreads();
  row.for_each([&](int token, float, float x) {
    if (x >= bound) {
      const int at = atomicAdd(&shared.list_length, 1);
      if (at < kListLength) {
        shared.list_keys[at] = to_key(row.score(x));
        shared.list_tokens[at] = token;
      }
    }
  });
  __syncthreads();
  return shared.list_length <= kListLength;
}

template <class RowOf>
__device__ int draw(const RowOf& row, float thread_best, const SamplingOptions& o, int drawn,
                    double uniform, Shared& shared) {
  const Block block{shared.sums};
  const bool has_top_k = o.has_top_k(row.vocabulary);
  const float least = o.min_p > 0 ? static_cast<float>(log(o.min_p)) : -INFINITY;
  if (!has_top_k && !o.has_top_p()) {
    return draw_by_number(row, uniform, least, shared);
  }
  Drawing drawing{has_top_k ? o.top_k : 0, o.has_top_p() ? o.top_p_after(drawn) : 1, uniform, least,
                  0};
  float bound = -INFINITY;
  if (!has_top_k) {
    drawing.mass = block.sum(mass_from(row, 0));
    bound = top_p_bound(row, drawing.top_p, shared);
  } else if (o.top_k <= kThreads) {
    bound = top_k_bound(row, thread_best, o.top_k);
  }
  if (!gather(row, bound, shared)) {
    return draw_in_order(block, row, drawing);
  }
  return shared.list_length <= kThreads ? draw_from_short_list(block, drawing, shared)
                                        : draw_in_order(block, List{shared}, drawing);
}

template <int kPack, class T>
__global__ void __launch_bounds__(kThreads)
    sample(const __grid_constant__ SampleTokens k, std::int64_t columns) {
  __shared__ Shared shared;
  const std::int64_t i = blockIdx.x;
  if (k.active[i] == 0) {
    return;
  }
  const SamplingOptions& options = k.options[i];
  const std::int64_t words = occurred_words(k.vocabulary);
  const int drawn = k.drawn[i];
  const bool penalty = k.occurred != nullptr && options.repetition_penalty != 1;
  Row<kPack, T> row{.logits = static_cast<const T*>(k.logits.data) +
                              (k.logit_rows != nullptr ? k.logit_rows[i] : i) * columns,
                    .occurred = penalty ? k.occurred + i * 2 * words : nullptr,
                    .biases = k.biases != nullptr ? k.biases + i * k.vocabulary : nullptr,
                    .banned = k.tokens[i] == options.banned_after ? options.banned : -1,
                    .vocabulary = static_cast<int>(k.vocabulary),
                    .penalty = static_cast<float>(options.repetition_penalty),
                    .temperature = static_cast<float>(options.temperature)};

  float largest = -INFINITY;  // of the model itself
  Mass best = 0;              // key, then the lowest token
  row.for_each([&](int token, float logit, float score) {
    largest = fmaxf(largest, logit);
    best = max(best, Mass{to_key(score)} << 32 | ~static_cast<std::uint32_t>(token));
  });
  const float thread_best =
      best == 0 ? -INFINITY : to_score(static_cast<std::uint32_t>(best >> 32));
  largest = block_largest(largest, shared.scratch);
  best = block_largest(best, shared.sums);
  float sum = 0;
  row.for_each([&](int, float logit, float) { sum += __expf(logit - largest); });
  const double total = block_sum(static_cast<double>(sum), reinterpret_cast<double*>(shared.sums));
  auto token = static_cast<int>(~static_cast<std::uint32_t>(best));
  if (!options.is_greedy()) {
    row.largest = to_score(static_cast<std::uint32_t>(best >> 32));
    __syncthreads();
    token = draw(row, thread_best, options, drawn,
                 uniform_of(k.keys[i], static_cast<std::uint64_t>(drawn)), shared);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    token = max(0, min(token, row.vocabulary - 1));  // of logits that are no numbers
    k.tokens[i] = token;
    k.log_probabilities[i] =
        static_cast<float>(to_float(row.logits[token]) - (largest + log(total)));
    k.drawn[i] = drawn + 1;
    if (k.occurred != nullptr) {
      std::uint32_t* const seen = k.occurred + i * 2 * words + token / 32;
      const std::uint32_t bit = 1u << token % 32;
      if (k.biases != nullptr) {
        k.biases[i * k.vocabulary + token] -= drawn_penalty(
            options.presence_penalty, options.frequency_penalty, (seen[words] & bit) == 0);
      }
      seen[0] |= bit;
      seen[words] |= bit;
    }
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const SampleTokens& k) {
  if (k.count == 0) {
    return;
  }
  dispatch_device(k.logits.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool packed = k.logits.columns() % kPackSize<T> == 0 &&
                        reinterpret_cast<std::uintptr_t>(k.logits.data) % 16 == 0;
    const auto kernel = packed ? sample<kPackSize<T>, T> : sample<1, T>;
    kernel<<<static_cast<unsigned>(k.count), kThreads, 0, cuda_stream(stream)>>>(
        k, k.logits.columns());
    check_launch("sample_tokens");
  });
}

}  // namespace bloomery
