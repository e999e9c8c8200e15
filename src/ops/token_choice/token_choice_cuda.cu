#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/token_choice/token_choice.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kDigits = 256;  // of a pass: the bits of an order are read eight at a time

// How many threads of the block before this one have `flag`; `total` of all. Every thread calls it.
__device__ int count_before(bool flag, int* warp_totals, int& total) {
  const unsigned mask = __ballot_sync(0xffffffffu, flag);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) {
    warp_totals[warp] = __popc(mask);
  }
  __syncthreads();
  int before = __popc(mask & ((1u << lane) - 1));
  total = 0;
  for (int w = 0; w < kWarps; ++w) {
    before += w < warp ? warp_totals[w] : 0;
    total += warp_totals[w];
  }
  __syncthreads();  // the totals may be written again
  return before;
}

// The order of the last token that is kept, and how many of that order are: a digit at a time from
// the highest, by counting those that share the digits before.
struct Bound {
  std::uint32_t order;
  int equal;
};
__device__ Bound find_bound(RandomKey key, std::int64_t sample, std::int64_t length, int kept,
                            int* counts, Bound* shared) {
  Bound bound{0, kept};
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (int d = threadIdx.x; d < kDigits; d += kThreads) {
      counts[d] = 0;
    }
    __syncthreads();
    for (std::int64_t place = threadIdx.x; place < length; place += kThreads) {
      const std::uint32_t order = token_order(key, sample, place);
      const bool shares = shift == 24 || order >> (shift + 8) == bound.order >> (shift + 8);
      if (shares) {
        atomicAdd(&counts[order >> shift & 0xffu], 1);
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int digit = 0, left = bound.equal;
      for (; left > counts[digit]; ++digit) {
        left -= counts[digit];
      }
      *shared = {bound.order | static_cast<std::uint32_t>(digit) << shift, left};
    }
    __syncthreads();
    bound = *shared;
  }
  return bound;
}

// A block draws for one sequence.
__global__ void draw_tokens(const std::int64_t* samples, std::int32_t* rows, std::int32_t* number,
                            std::int64_t length, int kept, RandomKey key) {
  __shared__ int counts[kDigits];
  __shared__ int warp_totals[kWarps];
  __shared__ Bound shared;
  const std::int64_t sequence = blockIdx.x, sample = samples[sequence];
  const Bound bound = find_bound(key, sample, length, kept, counts, &shared);
  int taken = 0, equal = 0;  // before the places of this round
  for (std::int64_t base = 0; base < length; base += kThreads) {
    const std::int64_t place = base + threadIdx.x;
    const bool is_there = place < length;
    const std::uint32_t order = is_there ? token_order(key, sample, place) : 0xffffffffu;
    const bool is_equal = is_there && order == bound.order;
    int round = 0;
    const int equal_before = equal + count_before(is_equal, warp_totals, round);
    equal += round;
    const bool takes =
        is_there && (order < bound.order || (is_equal && equal_before < bound.equal));
    const int at = taken + count_before(takes, warp_totals, round);
    taken += round;
    if (is_there) {
      const std::int64_t row = sequence * kept + at;
      number[sequence * length + place] = takes ? static_cast<std::int32_t>(row) : -1;
      if (takes) {
        rows[row] = static_cast<std::int32_t>(sequence * length + place);
      }
    }
  }
}

__global__ void chosen_numbers(const std::int32_t* rows, const std::int32_t* positions,
                               const std::int32_t* key_begin, const std::int32_t* key_end,
                               std::int32_t* chosen_positions, std::int32_t* chosen_begin,
                               std::int32_t* chosen_end, std::int64_t count, std::int64_t length,
                               std::int64_t kept) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) {
    return;
  }
  const std::int64_t sequence = i / kept;
  const auto chosen_before = [&](std::int32_t place) {
    const std::int64_t row = sequence * length + place;
    std::int64_t low = 0, high = kept;  // the first chosen one at or behind the place
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (rows[sequence * kept + middle] < row) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return static_cast<std::int32_t>(low);
  };
  if (positions != nullptr) {
    chosen_positions[i] = positions[rows[i]];
  }
  if (key_begin != nullptr) {
    chosen_begin[i] = chosen_before(key_begin[rows[i]]);
    chosen_end[i] = chosen_before(key_end[rows[i]]);
  }
}

// A thread writes one element.
template <class Real>
__global__ void select_rows(const std::int32_t* index, const Real* from, std::int64_t from_rows,
                            const Real* otherwise, Real* to, std::int64_t columns,
                            std::int64_t count, std::int64_t first, bool add) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) {
    return;
  }
  const std::int32_t chosen = index[i / columns];
  const std::int64_t row = chosen - first;
  float value = 0;
  bool found = false;
  if (from != nullptr && chosen >= 0 && row >= 0 && row < from_rows) {
    value = to_float(from[row * columns + i % columns]);
    found = true;
  } else if (otherwise != nullptr && chosen < 0) {
    value = to_float(otherwise[i]);
    found = true;
  }
  if (!add) {
    to[i] = from_float<Real>(value);
  } else if (found) {
    to[i] = from_float<Real>(to_float(to[i]) + value);
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const DrawKeptTokens& k) {
  draw_tokens<<<static_cast<unsigned>(k.samples.numel()), kThreads, 0, cuda_stream(stream)>>>(
      k.samples.as<std::int64_t>(), k.rows.as<std::int32_t>(), k.number.as<std::int32_t>(),
      k.length, static_cast<int>(k.kept), k.key);
  check_launch("draw_tokens");
}

void run(OnCuda, Stream& stream, const ChosenNumbers& k) {
  const std::int64_t count = k.rows.numel();
  chosen_numbers<<<num_blocks(count, kThreads), kThreads, 0, cuda_stream(stream)>>>(
      k.rows.as<std::int32_t>(), k.positions.as<std::int32_t>(), k.key_begin.as<std::int32_t>(),
      k.key_end.as<std::int32_t>(), k.chosen_positions.as<std::int32_t>(),
      k.chosen_begin.as<std::int32_t>(), k.chosen_end.as<std::int32_t>(), count, k.length, k.kept);
  check_launch("chosen_numbers");
}

void run(OnCuda, Stream& stream, const SelectRows& k) {
  const std::int64_t count = k.to.numel();
  if (count == 0) {
    return;
  }
  const std::int64_t rows = k.from.data != nullptr ? k.from.shape[0] : 0;
  dispatch_device(k.to.dtype, [&](auto type) {
    using Real = typename decltype(type)::type;
    select_rows<<<num_blocks(count, kThreads), kThreads, 0, cuda_stream(stream)>>>(
        k.index.as<std::int32_t>(), k.from.as<Real>(), rows, k.otherwise.as<Real>(),
        k.to.as<Real>(), k.to.shape[1], count, k.first, k.add);
    check_launch("select_rows");
  });
}

}  // namespace bloomery
