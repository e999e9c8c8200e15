// Which schedule counts when a run goes on from a checkpoint that has another one than the flags.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/reader.h"
#include "train/plan/plan.h"

namespace bloomery {

struct ScheduleChoice {
  ScheduleOptions schedule;
  // Why the run must not go on; empty: it may. Not thrown at once, because another model is the
  // better reason where there is one.
  std::string refusal;
  std::vector<std::string> notes;  // what --extend changes
};

// Megatron's rule, and --extend. `checkpoint` is what the run starts from; null: nothing.
ScheduleChoice choose_schedule(const PretrainOptions& options, const Plan& plan,
                               const CheckpointReader* checkpoint);

}  // namespace bloomery
