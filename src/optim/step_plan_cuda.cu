#include "device/cuda_check.h"
#include "optim/step_plan.h"

namespace bloomery {
namespace {

template <class Rule>
__global__ void plan(Rule rule, StepRules rules, const double* squared_norm, std::int64_t samples,
                     StepState* state, float* loss_scale) {
  StepState next = *state;
  plan_step(rule, rules, next, *squared_norm, samples);
  *state = next;
  *loss_scale = static_cast<float>(next.loss_scale.scale);
}

}  // namespace

void run(OnCuda, Stream& stream, const StepPlan& k) {
  std::visit(
      [&](const auto& rule) {
        plan<<<1, 1, 0, cuda_stream(stream)>>>(rule, k.rules, k.squared_norm.as<double>(),
                                               k.samples, k.state, k.loss_scale.as<float>());
      },
      k.rule);
  check_launch("step plan");
}

}  // namespace bloomery
