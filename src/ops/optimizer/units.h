// Flat buffers are made of units of 128 elements. A parameter starts at a unit, so whatever holds
// for a parameter holds for its units: one byte of flags each.
#pragma once

#include <cstdint>

namespace bloomery {

inline constexpr std::int64_t kUnitSize = 128;

enum UnitFlag : std::uint8_t {
  kUnitDecays = 1,     // weight decay applies
  kUnitUncounted = 2,  // another rank counts these elements in the gradient norm
};

constexpr std::int64_t num_units(std::int64_t num_elements) {
  return (num_elements + kUnitSize - 1) / kUnitSize;
}

}  // namespace bloomery
