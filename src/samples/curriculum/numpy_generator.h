// numpy's default_rng, number for number: PCG64 seeded by a SeedSequence. What DeepSpeed's sampler
// draws from.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace bloomery {

class NumpyGenerator {
 public:
  explicit NumpyGenerator(std::uint64_t seed);

  double random();  // uniform in [0, 1) with 53 bits
  // `count` indices, each drawn with a probability in proportion to its weight; choice() of there.
  std::vector<std::int64_t> choice(std::span<const double> weights, std::int64_t count);
  template <class T>
  void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i-- > 1;) {
      std::swap(values[i], values[interval(i)]);
    }
  }

 private:
  __extension__ using Word128 = unsigned __int128;

  void step();
  std::uint64_t word64();
  std::uint32_t word32();
  std::uint64_t interval(std::uint64_t maximum);  // uniform in [0, maximum]

  Word128 state_ = 0, increment_ = 0;
  bool has_half_ = false;  // of a word, for the next word32()
  std::uint32_t half_ = 0;
};

}  // namespace bloomery
