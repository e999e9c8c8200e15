#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/common/convert.h"
#include "ops/fake_quantization/fake_quantization.h"
#include "ops/fake_quantization/grid.h"

namespace bloomery {
namespace {

// Consecutive elements of one group.
struct Piece {
  std::int64_t group, begin, end;
};

std::vector<Piece> pieces(const GroupPlaces& places) {
  constexpr std::int64_t kMost = 1 << 15;
  std::vector<Piece> all;
  for (std::int64_t group = 0; group < places.groups; ++group) {
    const std::int64_t end = places.begin(group + 1);
    for (std::int64_t begin = places.begin(group); begin < end; begin += kMost) {
      all.push_back({group, begin, std::min(begin + kMost, end)});
    }
  }
  return all;
}

template <class T>
struct CpuArithmetic {
  using Real = Accumulator<T>;
  static Real stored(Real value) {
    T rounded;
    store(&rounded, value);
    return load(&rounded);
  }
  static Real nearest(Real value) { return std::nearbyint(value); }
  static Real product(Real a, Real b) { return a * b; }  // see the top of this file
};

template <class T>
Grid<Accumulator<T>> grid_of(const FakeQuantize& k, std::int64_t group) {
  const auto* const range = k.ranges.as<Accumulator<T>>() + 2 * group;
  return make_grid<CpuArithmetic<T>>(-range[0], range[1], k.bits, k.symmetric, !k.own_ranges);
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const FindRanges& k) {
  const std::vector<Piece> all = pieces(k.places);
  dispatch_floating(k.x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Real = Accumulator<T>;
    constexpr Real kNone = -std::numeric_limits<Real>::infinity();
    std::vector<Real> found(2 * all.size());
    stream.device().pool().for_each(static_cast<std::int64_t>(all.size()), [&](std::int64_t i) {
      const auto [group, begin, end] = all[static_cast<std::size_t>(i)];
      Real low = kNone, high = kNone;
      for (const T* at = k.x.as<T>() + begin; at != k.x.as<T>() + end; ++at) {
        const Real value = load(at);
        low = std::max(low, -value);
        high = std::max(high, value);
      }
      found[2 * static_cast<std::size_t>(i)] = low;
      found[2 * static_cast<std::size_t>(i) + 1] = high;
    });
    Real* const ranges = k.ranges.as<Real>();
    if (!k.raise) {
      std::fill(ranges, ranges + 2 * k.places.groups, kNone);
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (const std::size_t end : {0, 1}) {
        Real& to = ranges[2 * static_cast<std::size_t>(all[i].group) + end];
        to = std::max(to, found[2 * i + end]);
      }
    }
  });
}

template <>
void run(ThisCpu, Stream& stream, const FakeQuantize& k) {
  const std::vector<Piece> all = pieces(k.places);
  dispatch_floating(k.x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    stream.device().pool().for_each(static_cast<std::int64_t>(all.size()), [&](std::int64_t i) {
      const auto [group, begin, end] = all[static_cast<std::size_t>(i)];
      const Grid<Accumulator<T>> grid = grid_of<T>(k, group);
      for (std::int64_t e = begin; e < end; ++e) {
        store(k.y.as<T>() + e, snap<CpuArithmetic<T>>(grid, load(k.x.as<T>() + e)));
      }
    });
  });
}

template <>
void run(ThisCpu, Stream&, const FollowRanges& k) {
  const bool raises = k.largest.data != nullptr;
  for (std::int64_t i = 0; i < k.to.shape.numel(); i += 2) {
    const float* const range = k.range.as<float>() + i;
    const float* const seen = k.seen.as<float>() + i;
    const RangeEnds seen_ends{seen[0], seen[1]};
    const RangeEnds made = followed({range[0], range[1]}, seen_ends, k.momentum);
    k.to.as<float>()[i] = made.negative_min;
    k.to.as<float>()[i + 1] = made.max;
    for (const int end : {0, 1}) {
      if (raises) {
        float& largest = k.largest.as<float>()[i + end];
        largest = std::max(largest, end == 0 ? seen_ends.negative_min : seen_ends.max);
      }
    }
  }
}

}  // namespace bloomery
