// Learning rate and weight decay as functions of the number of samples trained on so far, with
// Megatron's rules. What counts is the position before the step, so that the first step of a
// warm-up runs at rate zero. Host and device compute them with the same code.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

namespace bloomery {

enum class DecayStyle : std::uint8_t { constant, linear, cosine, inverse_square_root };
enum class WeightDecayStyle : std::uint8_t { constant, linear, cosine };

// What a user says. All lengths are in one unit: samples, or iterations with `samples_per_unit` the
// global batch size.
struct ScheduleOptions {
  double learning_rate = 1e-4;
  double min_learning_rate = 0;
  DecayStyle decay_style = DecayStyle::linear;
  std::int64_t train_length = 1;
  std::optional<std::int64_t> decay_length;  // none: train_length
  std::int64_t warmup_length = 0;
  std::optional<double> warmup_fraction;  // of the decay length; instead of warmup_length

  double weight_decay = 0.01;
  std::optional<double> start_weight_decay, end_weight_decay;  // required unless constant
  WeightDecayStyle weight_decay_style = WeightDecayStyle::constant;

  std::int64_t samples_per_unit = 1;
};

// The same in samples, checked; trivially copyable, an argument of device kernels.
struct Schedule {
  double max_rate = 0, min_rate = 0;
  double warmup = 0;  // samples; not a whole number when it comes from a fraction
  double decay = 1;
  DecayStyle decay_style = DecayStyle::constant;
  double start_weight_decay = 0, end_weight_decay = 0;
  double weight_decay_length = 1;
  WeightDecayStyle weight_decay_style = WeightDecayStyle::constant;
};

// Throws Error that names the options which contradict each other.
Schedule make_schedule(const ScheduleOptions& options);

// Templates, because only those may be constexpr (and thereby device code) around cos and sqrt.
template <class Position>
constexpr double learning_rate(const Schedule& schedule, Position samples) {
  const auto x = static_cast<double>(samples);
  const double warmup = schedule.warmup;
  if (warmup > 0 && x <= warmup) {
    return schedule.max_rate * x / warmup;
  }
  if (schedule.decay_style == DecayStyle::constant) {
    return schedule.max_rate;
  }
  if (x > schedule.decay) {
    return schedule.min_rate;
  }
  if (schedule.decay_style == DecayStyle::inverse_square_root) {
    const double rate = schedule.max_rate * sqrt(warmup > 1 ? warmup : 1.0) / sqrt(x > 1 ? x : 1.0);
    return rate > schedule.min_rate ? rate : schedule.min_rate;
  }
  constexpr double kPi = 3.14159265358979323846;
  const double ratio = (x - warmup) / (schedule.decay - warmup);
  const double share =
      schedule.decay_style == DecayStyle::linear ? 1.0 - ratio : 0.5 * (cos(kPi * ratio) + 1.0);
  return schedule.min_rate + share * (schedule.max_rate - schedule.min_rate);
}

template <class Position>
constexpr double weight_decay(const Schedule& schedule, Position samples) {
  const auto x = static_cast<double>(samples);
  if (x > schedule.weight_decay_length ||
      schedule.weight_decay_style == WeightDecayStyle::constant) {
    return schedule.end_weight_decay;
  }
  constexpr double kPi = 3.14159265358979323846;
  const double ratio = x / schedule.weight_decay_length;
  const double share = schedule.weight_decay_style == WeightDecayStyle::linear
                           ? ratio
                           : 0.5 * (cos(kPi * (1.0 - ratio)) + 1.0);
  return schedule.start_weight_decay +
         share * (schedule.end_weight_decay - schedule.start_weight_decay);
}

}  // namespace bloomery
