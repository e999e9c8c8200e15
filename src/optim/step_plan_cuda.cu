#include "device/cuda_check.h"
#include "optim/step_plan.h"

namespace bloomery {
namespace {

__global__ void plan(StepRules rules, const double* squared_norm, std::int64_t samples,
                     StepState* state, float* loss_scale) {
  StepState next = *state;
  plan_step(rules, next, *squared_norm, samples);
  *state = next;
  *loss_scale = static_cast<float>(next.loss_scale.scale);
}

}  // namespace

void run(OnCuda, Stream& stream, const StepPlan& k) {
  plan<<<1, 1, 0, cuda_stream(stream)>>>(k.rules, k.squared_norm.as<double>(), k.samples, k.state,
                                         k.loss_scale.as<float>());
  check_launch("step plan");
}

}  // namespace bloomery
