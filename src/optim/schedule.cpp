#include "optim/schedule.h"

#include "base/error.h"

namespace bloomery {
namespace {

void check_rates(const ScheduleOptions& options) {
  check(options.min_learning_rate >= 0 && options.learning_rate >= options.min_learning_rate,
        "learning rate ", options.learning_rate, " and minimum ", options.min_learning_rate,
        ": the rate must be at least the minimum, and neither may be negative");
}

double warmup_samples(const ScheduleOptions& options, double decay) {
  check(options.warmup_length >= 0, "the warm-up length ", options.warmup_length,
        " must not be negative");
  if (!options.warmup_fraction) {
    return static_cast<double>(options.warmup_length * options.samples_per_unit);
  }
  check(options.warmup_length == 0, "the warm-up is given as a fraction (",
        *options.warmup_fraction, ") and as a length (", options.warmup_length,
        "); give only one of them");
  check(*options.warmup_fraction >= 0, "the warm-up fraction ", *options.warmup_fraction,
        " must not be negative");
  return *options.warmup_fraction * decay;
}

void set_weight_decay(const ScheduleOptions& options, Schedule& schedule) {
  schedule.weight_decay_style = options.weight_decay_style;
  if (options.weight_decay_style == WeightDecayStyle::constant) {
    check(!options.start_weight_decay && !options.end_weight_decay,
          "a start or end of the weight decay needs a linear or cosine style of its increase");
    schedule.start_weight_decay = schedule.end_weight_decay = options.weight_decay;
  } else {
    check(options.start_weight_decay && options.end_weight_decay,
          "a weight decay that changes needs both its start and its end");
    schedule.start_weight_decay = *options.start_weight_decay;
    schedule.end_weight_decay = *options.end_weight_decay;
  }
  check(
      schedule.start_weight_decay >= 0 && schedule.end_weight_decay >= schedule.start_weight_decay,
      "weight decay from ", schedule.start_weight_decay, " to ", schedule.end_weight_decay,
      ": it must start at zero or more and must not fall");
}

}  // namespace

Schedule make_schedule(const ScheduleOptions& options) {
  check_rates(options);
  check(options.train_length > 0 && options.samples_per_unit > 0, "training length ",
        options.train_length, " x ", options.samples_per_unit, " samples: both must be positive");
  Schedule schedule;
  schedule.max_rate = options.learning_rate;
  schedule.min_rate = options.min_learning_rate;
  schedule.decay_style = options.decay_style;
  schedule.decay = static_cast<double>(options.decay_length.value_or(options.train_length) *
                                       options.samples_per_unit);
  schedule.warmup = warmup_samples(options, schedule.decay);
  check(schedule.decay > 0 && schedule.warmup < schedule.decay, "the warm-up of ", schedule.warmup,
        " samples must be shorter than the decay of the learning rate, ", schedule.decay);
  schedule.weight_decay_length =
      static_cast<double>(options.train_length * options.samples_per_unit);
  set_weight_decay(options, schedule);
  return schedule;
}

}  // namespace bloomery
