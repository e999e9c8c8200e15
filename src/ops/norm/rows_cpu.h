// What the CPU kernels of the norms share. Internal linkage throughout: each instruction-set level
// needs its own copy.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "ops/common/convert.h"
#include "ops/common/row_lanes.h"
#include "ops/dropout/mask_cpu.h"
#include "ops/norm/norm.h"

namespace bloomery {

// Rows that kernels keep for themselves have room for whole vectors.
static inline std::size_t padded(std::int64_t columns) {
  return static_cast<std::size_t>((columns + kRowLanes<float> - 1) / kRowLanes<float> *
                                  kRowLanes<float>);
}

// A mask (which is fp32) as factors of a row.
template <class Sum>
[[gnu::always_inline]] static inline Lanes<Sum> load_factors(const float* factors) {
  if constexpr (std::is_same_v<Sum, float>) {
    return load_lanes(factors);
  } else {
    Lanes<Sum> lanes;
    for (int i = 0; i < kRowLanes<Sum>; ++i) {
      lanes[i] = static_cast<Sum>(factors[i]);
    }
    return lanes;
  }
}

// Sums of two terms over a row; the order of summation is fixed by the length.
// add_terms(first element, first sums, second sums, lanes inside the row) adds a vector of terms.
template <class Sum, class AddTerms>
[[gnu::always_inline]] static inline std::array<Sum, 2> two_sums(std::int64_t columns,
                                                                 const AddTerms& add_terms) {
  // Two chains of each sum, so that an addition need not wait for the one before it.
  Lanes<Sum> first[2] = {}, second[2] = {};
  constexpr int kStep = 2 * kRowLanes<Sum>;
  const std::int64_t even = columns / kStep * kStep;
  for (std::int64_t c = 0; c < even; c += kStep) {
    add_terms(c, first[0], second[0], AllLanes{});
    add_terms(c + kRowLanes<Sum>, first[1], second[1], AllLanes{});
  }
  for_lanes<Sum>(columns - even, [&](std::int64_t c, auto part) {
    add_terms(even + c, first[0], second[0], part);
  });
  return {sum_of_lanes<Sum>(first[0] + first[1]), sum_of_lanes<Sum>(second[0] + second[1])};
}

// out[c] = round(stream[c] + factors[c] * pending[c]); null factors mean one.
template <class Stored, class Branch>
static inline void add_pending_row(const Stored* stream, const Branch* pending,
                                   const float* factors, Stored* out, std::int64_t columns) {
  using Sum = Accumulator<Stored>;
  for_lanes<Sum>(columns, [=](std::int64_t c, auto part) {
    Lanes<Sum> addend = load_lanes(pending + c, part);
    if (factors != nullptr) {
      addend *= load_factors<Sum>(factors + c);
    }
    store_lanes(out + c, load_lanes(stream + c, part) + addend, part);
  });
}

// The mask of a row, or null when nothing is dropped.
class RowFactors {
 public:
  RowFactors(const DropoutMask& mask, std::int64_t columns)
      : mask_(mask), columns_(columns), factors_(mask ? mask_size(columns) : 0) {}
  const float* of(std::int64_t row) {
    if (!mask_) {
      return nullptr;
    }
    fill_mask(mask_, row, columns_, factors_.data());
    return factors_.data();
  }

 private:
  DropoutMask mask_;
  std::int64_t columns_;
  std::vector<float> factors_;
};

// Gain (with one added if so asked) or bias as what the row loops multiply and add.
template <class T>
static inline std::vector<Accumulator<T>> widened(ConstView values, std::int64_t columns,
                                                  Accumulator<T> plus) {
  std::vector<Accumulator<T>> wide(padded(columns), plus);
  if (values) {
    for (std::int64_t c = 0; c < columns; ++c) {
      wide[c] += load(values.as<T>() + c);
    }
  }
  return wide;
}

// Calls body(TypeTag<Stored>, TypeTag<Branch>) for the dtypes of stream and branch.
template <class Body>
static inline void dispatch_stream(DType stream, DType branch, const Body& body) {
  dispatch_floating(branch, [&](auto branch_tag) {
    using Branch = typename decltype(branch_tag)::type;
    if (stream == branch) {
      body(TypeTag<Branch>{}, branch_tag);
    } else if constexpr (sizeof(Branch) == 2) {
      body(TypeTag<float>{}, branch_tag);
    }
  });
}

}  // namespace bloomery
