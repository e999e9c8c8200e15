// Prefetches of cache lines, from functions that do nothing else. GCC takes a
// prefetch for something without effect and drops calls of such functions; the empty asm tells it
// otherwise. In a loop that also works, __builtin_prefetch alone does.
#pragma once

namespace bloomery {

// The line at `address` to L1.
[[gnu::always_inline]] inline void prefetch(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

[[gnu::always_inline]] inline void prefetch_to_l2(const void* address) {
  __builtin_prefetch(address, 0, 2);
  asm volatile("");
}

}  // namespace bloomery
