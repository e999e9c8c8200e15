#include "optim/step_plan.h"

namespace bloomery {

void run_on_host(const StepPlan& k) {
  std::visit(
      [&](const auto& rule) {
        plan_step(rule, k.rules, *k.state, *k.squared_norm.as<double>(), k.samples);
      },
      k.rule);
  *k.loss_scale.as<float>() = static_cast<float>(k.state->loss_scale.scale);
}

}  // namespace bloomery
