#include <cstring>

#include "text/dedup/minhash_kernel.h"

namespace bloomery {
namespace {

using Lanes = std::uint64_t __attribute__((vector_size(64)));
constexpr std::size_t kLanes = sizeof(Lanes) / sizeof(std::uint64_t);
constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;

// By reference: vectors of this size are passed differently from level to level.
void load(const std::uint64_t* from, Lanes& to) { std::memcpy(&to, from, sizeof to); }

// Lowers `least` to the hashes x modulo the prime, where those are less. 2^61 is 1 modulo the
// prime, so the folded sum is below twice the prime; of it and itself less the prime, which wraps
// around when it is smaller, the least is the remainder.
void lower(Lanes& least, const Lanes& x) {
  const Lanes folded = (x & kPrime) + (x >> 61), reduced = folded - kPrime;
  const Lanes rest = folded < reduced ? folded : reduced;
  least = least < rest ? least : rest;
}

}  // namespace

template <>
void update(ThisCpu, const LeastHashes& l) {
  static_assert(kMinHashLanes == 2 * kLanes);
  for (std::size_t k = 0; k < l.minima.size(); k += 2 * kLanes) {
    Lanes a0, a1, b0, b1, m0, m1;
    load(&l.factors[k], a0);
    load(&l.factors[k + kLanes], a1);
    load(&l.terms[k], b0);
    load(&l.terms[k + kLanes], b1);
    load(&l.minima[k], m0);
    load(&l.minima[k + kLanes], m1);
    for (const std::uint64_t hash : l.hashes) {
      lower(m0, hash * a0 + b0);
      lower(m1, hash * a1 + b1);
    }
    std::memcpy(&l.minima[k], &m0, sizeof m0);
    std::memcpy(&l.minima[k + kLanes], &m1, sizeof m1);
  }
}

}  // namespace bloomery
