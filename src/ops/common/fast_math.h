// Elementary functions in single precision without branches or library calls, so that loops over
// them vectorise at every instruction-set level.
#pragma once

#include <bit>
#include <cstdint>

namespace bloomery {

// e^x = e^r 2^n with |r| <= ln 2 / 2; the last bits of `shifted` are those of n + 127.
template <class Real>
struct ReducedExp {
  Real e_to_r, shifted;
};
constexpr std::int32_t kExpBias = 0x4B40007F;  // the bits of kRound below

template <class Real>
[[gnu::always_inline]] constexpr ReducedExp<Real> reduced_exp(Real x) {
  constexpr float kRound = 12582912.0f + 127.0f;  // 1.5 * 2^23: adding and subtracting it rounds
  const Real shifted = x * 1.44269504f + kRound;
  const Real n = shifted - kRound;
  const Real r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  // e^r = 1 + r + r^2 q(r), q minimax in the relative error.
  Real q = r * 1.38145402e-3f + 8.36874521e-3f;
  q = q * r + 4.16683908e-2f;
  q = q * r + 1.66665204e-1f;
  q = q * r + 4.99999934e-1f;
  return {(q * r + 1.0f) * r + 1.0f, shifted};
}

// e^x within 1e-7 relative, for a float or a compiler vector of floats (Integer: the integers of
// the same width). Below -87.3 the result is 0, so that no result is subnormal; above 88.72 it is
// +inf; NaN stays NaN.
template <class Real, class Integer>
[[gnu::always_inline]] constexpr Real exp_of(Real x) {
  const Real low = x < -88.0f ? Real{} - 88.0f : x;
  const ReducedExp<Real> e = reduced_exp<Real>(low > 89.0f ? Real{} + 89.0f : low);
  // 2^n as two factors, because n = 128 has no representation of its own.
  const Integer exponent = std::bit_cast<Integer>(e.shifted) - kExpBias;
  const Integer half = exponent >> 1;
  const Real result = e.e_to_r * std::bit_cast<Real>((half + 127) << 23) *
                      std::bit_cast<Real>((exponent - half + 127) << 23);
  return x < -87.3f ? Real{} : result;
}

// The same bits in two thirds of the instructions, for x of at most 88 (or NaN).
template <class Real, class Integer>
[[gnu::always_inline]] constexpr Real exp_up_to_88(Real x) {
  const ReducedExp<Real> e = reduced_exp<Real>(x);
  // 2^n: the shift leaves n + 127 in the place of an exponent. A product, since a sum of bits could
  // turn a NaN into a number.
  const Real result = e.e_to_r * std::bit_cast<Real>(std::bit_cast<Integer>(e.shifted) << 23);
  return x < -87.3f ? Real{} : result;
}

// 2^x within 2^-18 relative, for x of at most 127 (or NaN), in two thirds of the instructions: for
// what will be rounded to 16 bits. Below -126.5 the result is 0.
template <class Real, class Integer>
[[gnu::always_inline]] constexpr Real brief_exp2(Real x) {
  constexpr float kRound = 12582912.0f + 127.0f;  // as above
  const Real low = x < -127.0f ? Real{} - 127.0f : x;
  const Real shifted = low + kRound;
  const Real r = low - (shifted - kRound);
  // Minimax among those that are exactly 1 at 0: softmax multiplies its sums by many such powers.
  Real p = r * 9.58285316e-3f + 5.59064250e-2f;
  p = p * r + 2.40240986e-1f;
  p = p * r + 6.93124193e-1f;
  p = p * r + 1.0f;
  return p * std::bit_cast<Real>(std::bit_cast<Integer>(shifted) << 23);
}

[[gnu::always_inline]] constexpr float fast_exp(float x) { return exp_of<float, std::int32_t>(x); }

struct SinCos {
  float sin, cos;
};

// Sine and cosine within 1e-7 of an angle of up to 2^30 in magnitude. The angle is reduced in
// double precision: in single precision a product position * frequency would already be wrong by
// 1e-3 at position 1e4.
[[gnu::always_inline]] inline SinCos fast_sincos(double angle) {
  // angle = n pi/2 + r with |r| <= pi/4; the low bits of `shifted` are those of n.
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
  const double shifted = angle * 0.6366197723675814 + kRound;
  const double n = shifted - kRound;
  const auto r = static_cast<float>(angle - n * 1.5707963267948966);
  const auto quadrant = static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(shifted));
  const float square = r * r;
  float s = square * -1.95149573e-4f + 8.33215841e-3f;
  s = s * square - 1.66666546e-1f;
  s = s * square * r + r;
  float c = square * 2.44380906e-5f - 1.38873645e-3f;
  c = c * square + 4.16666468e-2f;
  c = c * square * square + (1.0f - 0.5f * square);
  const bool swapped = (quadrant & 1u) != 0;
  const float sine = swapped ? c : s;
  const float cosine = swapped ? s : c;
  return {(quadrant & 2u) != 0 ? -sine : sine, ((quadrant + 1u) & 2u) != 0 ? -cosine : cosine};
}

}  // namespace bloomery
