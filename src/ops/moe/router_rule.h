// How a router decides: switches that cover DeepSpeed's gates and those of Mixtral and Qwen.
#pragma once

#include <cstdint>

namespace bloomery {

// Which choice sees the draws added to its logits.
enum class Sampling : std::uint8_t { none, first, second };

// Who keeps an expert that more tokens chose than it has room for: those with the highest draws;
// first choices in the order of the tokens, then second ones; those with the highest probability.
enum class Priority : std::uint8_t { random, position, probability };

// Whose shares the balance loss looks at.
enum class Balance : std::uint8_t { first_choices, all_choices };

inline constexpr int kMostChoices = 16;

struct RouterRule {
  int topk = 1;
  bool renormalise = false;  // the gates of a token sum to one, of those choices that are kept
  Sampling sampling = Sampling::none;
  Priority priority = Priority::random;
  Balance balance = Balance::first_choices;
};

// The order in which tokens are served: position by position, of each the sequences. Rows lie as
// [part, sequence, position within the part], where several ranks hold parts of the sequences.
struct TokenOrder {
  std::int64_t num_sequences = 1, length = 1;  // of a part

  constexpr std::int64_t operator()(std::int64_t row) const {
    const std::int64_t position = row % length, sequence = row / length % num_sequences;
    const std::int64_t part = row / length / num_sequences;
    return (part * length + position) * num_sequences + sequence;
  }
};

}  // namespace bloomery
