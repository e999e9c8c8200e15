// The frequencies by which rotary positions turn, and how models that see longer sequences than
// they were first trained on change them (Hugging Face's rope types).
#pragma once

#include <array>
#include <cstdint>

namespace bloomery {

struct RotaryScaling {
  enum class Kind : std::uint8_t {
    none,
    linear,   // positions are divided by the factor
    dynamic,  // the base grows with sequences longer than original_length
    llama3,   // slow turns are divided by the factor, fast ones stay
    yarn,     // the same with another ramp, and attention is sharpened
  };
  Kind kind = Kind::none;
  double factor = 1;
  // What the frequencies were trained for: dynamic, llama3 and yarn need it.
  std::int64_t original_length = 0;
  // llama3: wavelengths above original_length / low are slow, below original_length / high fast.
  double low_frequency_factor = 1, high_frequency_factor = 4;
  // yarn: pairs that turn less often than beta_slow in original_length positions are slow, more
  // often than beta_fast fast; `truncate` rounds both to whole pairs.
  double beta_fast = 32, beta_slow = 1;
  bool truncate = true;
  double mscale = 0, mscale_all_dim = 0;  // yarn: where M comes from; 0: not given
  double attention_factor = 0;            // yarn: M itself; 0: by the rule
};

// Frequencies travel by value, so that no device memory has to be prepared for them.
inline constexpr std::int64_t kMaxRotaryPairs = 128;

struct RotaryTable {
  std::int64_t num_pairs = 0;
  std::array<double, kMaxRotaryPairs> frequencies{};  // radians per position
  double magnitude = 1;                               // M: cosine and sine are multiplied by it
};

// `dim` channels of a head turn: even, at most twice kMaxRotaryPairs. `length` is that of whole
// sequences; only dynamic scaling looks at it. Throws Error for numbers that make no sense.
RotaryTable make_rotary_table(double base, std::int64_t dim, const RotaryScaling& scaling,
                              std::int64_t length);

}  // namespace bloomery
