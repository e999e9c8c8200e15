// What the CPU kernels of the norms share. Internal linkage throughout: each instruction-set level
// needs its own copy.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "ops/common/convert.h"
#include "ops/dropout/mask_cpu.h"
#include "ops/norm/norm.h"

namespace bloomery {

// Sums of two terms over a row, in lanes that the compiler keeps in vector registers; the order of
// summation is fixed by the length. add_terms(i, first, second) adds the terms of element i.
template <class Sum, class AddTerms>
static inline std::array<Sum, 2> two_sums(std::int64_t count, const AddTerms& add_terms) {
  constexpr int kLanes = 128 / static_cast<int>(sizeof(Sum));
  Sum first[kLanes] = {}, second[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      add_terms(i + lane, first[lane], second[lane]);
    }
  }
  for (int lane = 0; i < count; ++i, ++lane) {
    add_terms(i, first[lane], second[lane]);
  }
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) {
      first[lane] += first[lane + half];
      second[lane] += second[lane + half];
    }
  }
  return {first[0], second[0]};
}

// out[c] = round(stream[c] + factors[c] * pending[c]); null factors mean one.
template <class Stored, class Branch>
static inline void settle_row(const Stored* stream, const Branch* pending, const float* factors,
                              Stored* out, std::int64_t columns) {
  using Sum = Accumulator<Stored>;
  if (factors != nullptr) {
    for (std::int64_t c = 0; c < columns; ++c) {
      store(out + c, load(stream + c) + static_cast<Sum>(factors[c]) * load(pending + c));
    }
  } else {
    for (std::int64_t c = 0; c < columns; ++c) {
      store(out + c, load(stream + c) + load(pending + c));
    }
  }
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
  std::vector<Accumulator<T>> wide(static_cast<std::size_t>(columns), plus);
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
