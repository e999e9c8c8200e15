#include "ops/task_loss/task_loss.h"

namespace bloomery {
namespace {

template <class Real>
void squared_errors(const SquaredErrors& k) {
  const Real* const x = k.x.as<Real>();
  const Real factor =
      2 * *k.inverse.as<Real>() * (k.grad_scale ? Real(*k.grad_scale.as<float>()) : Real(1));
  for (std::int64_t i = 0; i < k.x.numel(); ++i) {
    const Real error = x[i] - Real(k.scores.as<float>()[i]);
    const Real weight = k.weights ? Real(k.weights.as<float>()[i]) : Real(1);
    k.losses.as<Real>()[i] = error * error;
    k.gradient.as<Real>()[i] = error * weight * factor;
  }
}

}  // namespace

template <>
void run(ThisCpu, Stream&, const SquaredErrors& k) {
  if (k.x.dtype == DType::fp64) {
    squared_errors<double>(k);
  } else {
    squared_errors<float>(k);
  }
}

}  // namespace bloomery
