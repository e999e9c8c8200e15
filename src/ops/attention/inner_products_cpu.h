// Products of rows with rows, for the backward pass of attention. For *_cpu.cpp files only.
#pragma once

#include "ops/attention/attention_pack_cpu.h"

namespace bloomery {
namespace {

template <class T>
Vector<Accumulator<T>> products_by_lane(const T* a, const T* b, std::int64_t count) {
  constexpr std::int64_t kStep = kLanes<Accumulator<T>>;
  Vector<Accumulator<T>> sums{};
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    sums += load_lanes(a + i) * load_lanes(b + i);
  }
  if (i < count) {
    T rest[2][kStep] = {};
    std::copy_n(a + i, count - i, rest[0]);
    std::copy_n(b + i, count - i, rest[1]);
    sums += load_lanes(rest[0]) * load_lanes(rest[1]);
  }
  return sums;
}

// to[i] = row i of a times row i of b, summed lane by lane and then over the lanes in order; zero
// from the last row up to kQueryBlock.
template <class T>
void inner_products(const Rows<T>& a, const Rows<T>& b, std::int64_t width, Accumulator<T>* to) {
  using Real = Accumulator<T>;
  constexpr std::int64_t kParts = std::max(4, kLanes<Real>);  // four for transposing
  alignas(64) Real parts[kQueryBlock * kParts] = {};
  alignas(64) Real by_lane[kParts * kQueryBlock];
  for (std::int64_t i = 0; i < a.count; ++i) {
    store_vector(parts + i * kParts,
                 products_by_lane(a.data + i * a.stride, b.data + i * b.stride, width));
  }
  transpose(parts, kParts, kQueryBlock, kParts, by_lane, kQueryBlock);
  for (std::int64_t i = 0; i < kQueryBlock; i += kLanes<Real>) {
    Vector<Real> total{};
    for (std::int64_t lane = 0; lane < kParts; ++lane) {
      total += load_vector(by_lane + lane * kQueryBlock + i);
    }
    store_vector(to + i, total);
  }
}

}  // namespace
}  // namespace bloomery
