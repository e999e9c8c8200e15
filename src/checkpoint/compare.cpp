#include "checkpoint/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "checkpoint/boxes.h"

namespace bloomery {
namespace {

constexpr std::int64_t kElements = 1 << 20;  // at a time

template <class T>
double as_number(T value) {
  if constexpr (std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return static_cast<double>(value);
  }
}

template <class T>
void compare_values(const std::byte* a, const std::byte* b, std::int64_t count, std::int64_t base,
                    TensorDifference& difference) {
  for (std::int64_t i = 0; i < count; ++i) {
    T left, right;
    std::memcpy(&left, a + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    std::memcpy(&right, b + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    // By bits: NaN equals itself, and the two zeros differ.
    const std::size_t at = static_cast<std::size_t>(i) * sizeof(T);
    if (std::memcmp(a + at, b + at, sizeof(T)) == 0) {
      continue;
    }
    difference.first = difference.count == 0 ? base + i : difference.first;
    ++difference.count;
    const double distance = std::abs(as_number(left) - as_number(right));
    const bool larger = std::isnan(distance) || distance > difference.largest;
    difference.largest = larger ? distance : difference.largest;
  }
}

void compare_bytes(DType dtype, const std::vector<std::byte>& a, const std::vector<std::byte>& b,
                   std::int64_t base, TensorDifference& difference) {
  const auto count = static_cast<std::int64_t>(a.size() / size_of(dtype));
  const auto compare = [&]<class T>(TypeTag<T>) {
    compare_values<T>(a.data(), b.data(), count, base, difference);
  };
  switch (dtype) {
    case DType::int32:
      return compare(TypeTag<std::int32_t>{});
    case DType::int64:
      return compare(TypeTag<std::int64_t>{});
    case DType::uint8:
      return compare(TypeTag<std::uint8_t>{});
    default:
      dispatch_floating(dtype, compare);
  }
}

}  // namespace

TensorDifference compare_tensor(const CheckpointReader& a, const CheckpointReader& b,
                                const std::string& name) {
  const ManifestTensor& left = a.tensor(name);
  const ManifestTensor& right = b.tensor(name);
  check(left.dtype == right.dtype && left.shape == right.shape, "tensor ", name, " is ", left.dtype,
        " ", left.shape, " and ", right.dtype, " ", right.shape, ": they cannot be compared");
  TensorDifference difference;
  const Box whole = Box::whole(left.shape);
  std::vector<std::byte> in_a, in_b;
  for (std::int64_t first = 0; first < left.shape.numel(); first += kElements) {
    std::int64_t base = first;
    for (const Box& box :
         boxes_of_range(whole, first, std::min(kElements, left.shape.numel() - first))) {
      const auto bytes = static_cast<std::size_t>(box.extent.numel()) * size_of(left.dtype);
      in_a.resize(bytes);
      in_b.resize(bytes);
      a.read(name, box, in_a);
      b.read(name, box, in_b);
      if (in_a != in_b) {
        compare_bytes(left.dtype, in_a, in_b, base, difference);
      }
      base += box.extent.numel();
    }
  }
  return difference;
}

}  // namespace bloomery
