// Grids of 2^bits equally spaced numbers, and the nearest number of a grid, with the roundings of
// DeepSpeed's functions: each operation rounds to the dtype of the numbers.
#pragma once

namespace bloomery {

template <class Real>
struct Grid {
  Real scale, zero;  // numbers are zero + n * scale
  Real low, high;    // of n
};

// An Arithmetic says how a device computes: `stored` rounds to the dtype, `nearest` to integers,
// halves to even ones, and a `product` is rounded before anything is added to it. With `wide` (a
// range that is kept in fp32) only the results are rounded to the dtype.
template <class Arithmetic, class Real>
constexpr Grid<Real> make_grid(Real min, Real max, int bits, bool symmetric, bool wide) {
  const auto rounded = [wide](Real value) { return wide ? value : Arithmetic::stored(value); };
  const auto count = static_cast<Real>(1ll << bits);
  if (symmetric) {
    const Real size = -min > max ? -min : max;
    return {Arithmetic::stored(rounded(rounded(2 * size) / count)), 0, -count / 2,
            Arithmetic::stored(count / 2 - 1)};
  }
  const Real scale = rounded(rounded(max - min) / count);
  const Real zero = rounded(Arithmetic::product(Arithmetic::nearest(rounded(min / scale)), scale));
  return {Arithmetic::stored(scale), Arithmetic::stored(zero), 0, Arithmetic::stored(count - 1)};
}

// A range without width (all numbers are the same) has no grid: numbers stay.
template <class Arithmetic, class Real>
constexpr Real snap(const Grid<Real>& grid, Real x) {
  if (!(grid.scale > 0)) {
    return x;
  }
  Real n = Arithmetic::nearest(Arithmetic::stored(Arithmetic::stored(x - grid.zero) / grid.scale));
  n = n < grid.low ? grid.low : n;
  n = n > grid.high ? grid.high : n;
  return Arithmetic::stored(Arithmetic::stored(Arithmetic::product(n, grid.scale)) + grid.zero);
}

// A range that follows those of the inputs: DeepSpeed's moving average. `range` is empty at first
// (both ends equal), and then that of the input. What is no number is not followed.
struct RangeEnds {
  float negative_min, max;
};
constexpr RangeEnds followed(RangeEnds range, RangeEnds seen, float momentum) {
  constexpr float kMost = 3.402823466e38f;
  const bool numbers = seen.negative_min <= kMost && seen.negative_min >= -kMost &&
                       seen.max <= kMost && seen.max >= -kMost;
  if (!numbers) {
    return range;
  }
  const RangeEnds from = -range.negative_min == range.max ? seen : range;
  return {from.negative_min * momentum + seen.negative_min * (1 - momentum),
          from.max * momentum + seen.max * (1 - momentum)};
}

}  // namespace bloomery
