// What libFuzzer calls, for every target.
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    bloomery::fuzz_input(std::as_bytes(std::span(data, size)));
  } catch (const bloomery::Error&) {
    return 0;  // refused with a message, as it should be
  }
  return 0;
}
