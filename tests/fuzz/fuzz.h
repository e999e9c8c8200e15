// What the fuzz targets share. Each target_NAME.cpp of this folder becomes the program fuzz_NAME:
// it defines fuzz_input(), which gives arbitrary bytes to one parser. A parser must return or throw
// Error; anything else, a sanitizer's complaint included, ends the run. Seeds lie in seeds/NAME.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input);

}  // namespace bloomery
