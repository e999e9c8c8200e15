// Requests for memory that will be wanted soon, from functions that do nothing else. GCC takes a
// prefetch for something without effect and drops calls of such functions; the empty asm tells it
// otherwise. In a loop that also works, __builtin_prefetch alone does.
#pragma once

namespace bloomery {

// The line at `address` into the first cache.
[[gnu::always_inline]] inline void prefetch(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

// Into the second cache.
[[gnu::always_inline]] inline void prefetch_to_second(const void* address) {
  __builtin_prefetch(address, 0, 2);
  asm volatile("");
}

}  // namespace bloomery
