// The one rounding of sizes to multiples.
#pragma once

#include <type_traits>

namespace bloomery {

// The least multiple of `multiple` that is not below `count`; neither is negative.
template <class Integer>
constexpr Integer round_up(Integer count, std::type_identity_t<Integer> multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

}  // namespace bloomery
