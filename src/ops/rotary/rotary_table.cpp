#include "ops/rotary/rotary_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace bloomery {
namespace {

using Kind = RotaryScaling::Kind;
constexpr double kTurn = 2 * std::numbers::pi;

void check_scaling(const RotaryScaling& s, double base, std::int64_t dim) {
  check(base > 0, "rotary: the base must be positive, not ", base);
  check(s.kind == Kind::none || s.factor > 0, "rotary: the scaling factor must be positive, not ",
        s.factor);
  check(s.kind == Kind::none || s.kind == Kind::linear || s.original_length > 0,
        "rotary: this scaling needs the original length (original_max_position_embeddings)");
  check(s.kind != Kind::dynamic || dim > 2, "rotary: dynamic scaling needs more than 2 channels");
  check(s.kind != Kind::llama3 ||
            (s.low_frequency_factor > 0 && s.high_frequency_factor > s.low_frequency_factor),
        "rotary: llama3 needs 0 < low_freq_factor < high_freq_factor, not ", s.low_frequency_factor,
        " and ", s.high_frequency_factor);
  check(s.kind != Kind::yarn || (s.beta_slow > 0 && s.beta_fast >= s.beta_slow && base > 1),
        "rotary: yarn needs 0 < beta_slow <= beta_fast and a base above 1, not ", s.beta_slow, ", ",
        s.beta_fast, " and ", base);
}

double dynamic_base(const RotaryScaling& s, double base, std::int64_t dim, std::int64_t length) {
  const auto trained = static_cast<double>(s.original_length);
  const double longest = std::max(static_cast<double>(length), trained);
  const auto channels = static_cast<double>(dim);
  return base * std::pow(s.factor * longest / trained - (s.factor - 1), channels / (channels - 2));
}

double llama3_frequency(const RotaryScaling& s, double frequency) {
  const double turns = static_cast<double>(s.original_length) * frequency / kTurn;
  if (turns < s.low_frequency_factor) {
    return frequency / s.factor;
  }
  if (turns > s.high_frequency_factor) {
    return frequency;
  }
  const double fast =
      (turns - s.low_frequency_factor) / (s.high_frequency_factor - s.low_frequency_factor);
  return (1 - fast) * frequency / s.factor + fast * frequency;
}

// The pairs between which yarn goes over from fast to slow.
struct Ramp {
  double low, high;

  Ramp(const RotaryScaling& s, double base, std::int64_t dim) {
    const auto pair_of = [&](double turns) {
      return static_cast<double>(dim) *
             std::log(static_cast<double>(s.original_length) / (kTurn * turns)) /
             (2 * std::log(base));
    };
    low = pair_of(s.beta_fast);
    high = pair_of(s.beta_slow);
    if (s.truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, static_cast<double>(dim - 1));
    if (low == high) {
      high += 0.001;
    }
  }
  double slow_part(std::int64_t pair) const {
    return std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0);
  }
};

double yarn_magnitude(const RotaryScaling& s) {
  if (s.attention_factor > 0) {
    return s.attention_factor;
  }
  const auto growth = [&](double scale) {
    return s.factor <= 1 ? 1.0 : 0.1 * scale * std::log(s.factor) + 1;
  };
  return s.mscale > 0 && s.mscale_all_dim > 0 ? growth(s.mscale) / growth(s.mscale_all_dim)
                                              : growth(1);
}

}  // namespace

RotaryTable make_rotary_table(double base, std::int64_t dim, const RotaryScaling& s,
                              std::int64_t length) {
  check(dim > 0 && dim % 2 == 0 && dim <= 2 * kMaxRotaryPairs, "rotary: ", dim,
        " channels cannot turn: an even number, at most ", 2 * kMaxRotaryPairs, ", can");
  check_scaling(s, base, dim);
  if (s.kind == Kind::dynamic) {
    base = dynamic_base(s, base, dim, length);
  }
  RotaryTable table{.num_pairs = dim / 2};
  for (std::int64_t i = 0; i < table.num_pairs; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(dim);
    double& frequency = table.frequencies[static_cast<std::size_t>(i)];
    frequency = std::pow(base, exponent);
    if (s.kind == Kind::linear) {
      frequency /= s.factor;
    } else if (s.kind == Kind::llama3) {
      frequency = llama3_frequency(s, frequency);
    } else if (s.kind == Kind::yarn) {
      const double slow = Ramp(s, base, dim).slow_part(i);
      frequency = frequency * (1 - slow) + frequency / s.factor * slow;
    }
  }
  table.magnitude = s.kind == Kind::yarn ? yarn_magnitude(s) : 1;
  return table;
}

}  // namespace bloomery
