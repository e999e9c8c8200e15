#include <algorithm>

#include "comm/reduce.h"

namespace bloomery {
namespace {

constexpr std::int64_t kBlock = 1024;  // elements whose sums stay in the first-level cache
constexpr std::int64_t kGrain = 64 * kBlock;

// What sums are kept in. Unsigned, so that integers wrap instead of overflowing.
template <class T>
struct SumType {
  using type = float;
};
template <>
struct SumType<double> {
  using type = double;
};
template <>
struct SumType<std::int32_t> {
  using type = std::uint32_t;
};
template <>
struct SumType<std::int64_t> {
  using type = std::uint64_t;
};

template <class T>
void add_block(const T* from, typename SumType<T>::type* sums, std::int64_t count) {
  using Sum = typename SumType<T>::type;
  for (std::int64_t i = 0; i < count; ++i) {
    sums[i] += static_cast<Sum>(from[i]);
  }
}

// The conversions of bf16 and fp16 keep order, so comparing wide values is exact.
template <class T, class Wide>
void max_block(const T* from, Wide* largest, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto x = static_cast<Wide>(from[i]);
    largest[i] = x > largest[i] || x != x ? x : largest[i];  // NaN wins
  }
}

template <class T, class Wide, class Combine>
void reduce_range(const RankReduce& k, std::int64_t begin, std::int64_t end, Combine combine) {
  Wide result[kBlock];
  for (std::int64_t first = begin; first < end; first += kBlock) {
    const std::int64_t count = std::min(kBlock, end - first);
    const T* start = static_cast<const T*>(k.inputs[0]) + first;
    for (std::int64_t i = 0; i < count; ++i) {
      result[i] = static_cast<Wide>(start[i]);
    }
    for (int rank = 1; rank < k.num_inputs; ++rank) {
      combine(static_cast<const T*>(k.inputs[rank]) + first, result, count);
    }
    for (int rank = 0; rank < k.num_outputs; ++rank) {
      T* to = static_cast<T*>(k.outputs[rank]) + first;
      for (std::int64_t i = 0; i < count; ++i) {
        to[i] = static_cast<T>(result[i]);
      }
    }
  }
}

template <class T>
void reduce(const RankReduce& k, std::int64_t begin, std::int64_t end) {
  using Sum = typename SumType<T>::type;
  if (k.reduce == Reduce::sum) {
    reduce_range<T, Sum>(k, begin, end, add_block<T>);
  } else {
    using Wide = std::conditional_t<std::is_integral_v<T>, T, Sum>;
    reduce_range<T, Wide>(k, begin, end, max_block<T, Wide>);
  }
}

void reduce_any(const RankReduce& k, std::int64_t begin, std::int64_t end) {
  switch (k.dtype) {
    case DType::int32:
      return reduce<std::int32_t>(k, begin, end);
    case DType::int64:
      return reduce<std::int64_t>(k, begin, end);
    default:
      return dispatch_floating(
          k.dtype, [&](auto tag) { reduce<typename decltype(tag)::type>(k, begin, end); });
  }
}

}  // namespace

// A queued stream reduces on its own thread, so that the rank's pool stays with the computation
// that the communication overlaps.
template <>
void run(ThisCpu, Stream& stream, const RankReduce& k) {
  if (stream.queued()) {
    return reduce_any(k, 0, k.count);
  }
  stream.device().pool().for_ranges(
      k.count, kGrain, [&](std::int64_t begin, std::int64_t end) { reduce_any(k, begin, end); });
}

}  // namespace bloomery
