// Whether a run still learns: how many steps in a row changed nothing because their gradients were
// not finite, and when that is worth a warning or the end.
#pragma once

#include <cstdint>
#include <string>

#include "optim/optimizer.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {

class SkippedSteps {
 public:
  SkippedSteps(const StopOptions& stop, bool stop_at_min_scale, const LossScaleOptions& scale);

  // What to say to people after a step; both empty: nothing.
  struct Finding {
    std::string warning;
    std::string end;  // why the run cannot go on
  };
  Finding add(std::int64_t iteration, const StepReport& update);
  // Why a run that ends now counts as diverged: it learnt nothing any more. Empty: it did.
  std::string at_end() const;

 private:
  std::string streak() const;

  StopOptions stop_;
  bool stop_at_min_scale_;
  LossScaleOptions scale_;
  std::int64_t steps_ = 0;
  std::int64_t in_a_row_ = 0, first_ = 0;  // and the iteration of the first of them
};

}  // namespace bloomery
