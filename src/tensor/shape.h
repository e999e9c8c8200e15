// The extents of a row-major, contiguous tensor. At most six dimensions; trivially copyable, so
// that it can travel inside kernel arguments.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>

#include "base/error.h"

namespace bloomery {

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  constexpr Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents) {
    check(extents.size() <= kMaxRank, "a tensor has at most ", kMaxRank, " dimensions, not ",
          extents.size());
    for (const std::int64_t extent : extents) {
      append(extent);
    }
  }

  int rank() const { return rank_; }
  std::int64_t operator[](int dim) const { return extents_[dim]; }
  std::int64_t& operator[](int dim) { return extents_[dim]; }
  std::int64_t back() const { return rank_ > 0 ? extents_[rank_ - 1] : 1; }
  void append(std::int64_t extent) {
    check(rank_ < kMaxRank && extent >= 0, "cannot append extent ", extent, " to a shape");
    extents_[rank_++] = extent;
  }

  std::int64_t numel() const {
    std::int64_t count = 1;
    for (int i = 0; i < rank_; ++i) {
      count *= extents_[i];
    }
    return count;
  }
  // Product of all extents but the last: the number of rows of a matrix view.
  std::int64_t rows() const {
    std::int64_t count = 1;
    for (int i = 0; i + 1 < rank_; ++i) {
      count *= extents_[i];
    }
    return count;
  }

  bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) {
      return false;
    }
    for (int i = 0; i < rank_; ++i) {
      if (extents_[i] != other.extents_[i]) {
        return false;
      }
    }
    return true;
  }

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

inline std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '[';
  for (int i = 0; i < shape.rank(); ++i) {
    out << (i > 0 ? ", " : "") << shape[i];
  }
  return out << ']';
}

}  // namespace bloomery
