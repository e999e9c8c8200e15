// The angles of rotary positions: one frequency per pair of channels, stretched for sequences that
// are longer than those a model was trained on.
#pragma once

#include <cstdint>
#include <vector>

namespace bloomery {

struct RotaryScaling {
  enum class Kind : std::uint8_t { none, linear, dynamic, llama3, yarn };
  Kind kind = Kind::none;
  double factor = 1;
  std::int64_t original_length = 0;  // positions that the model was trained with (llama3, yarn), or
                                     // from which on the base grows (dynamic)
  double low_frequency_factor = 1, high_frequency_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;                        // yarn
  double attention_factor = 0;  // yarn: what cos and sin are multiplied by; 0: by the rule
  double mscale = 0, mscale_all_dim = 0;  // yarn: of that rule; 0: not given
  bool truncate = true;                   // yarn: bounds are whole numbers
};

struct RotaryAngles {
  std::vector<double> frequencies;  // dim / 2 of them
  double amplitude = 1;             // of cos and sin
};

// `length` is that of the sequences, which `dynamic` looks at; 0: at most original_length.
RotaryAngles rotary_angles(std::int64_t dim, double base, const RotaryScaling& scaling,
                           std::int64_t length = 0);

}  // namespace bloomery
