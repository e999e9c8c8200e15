#include "train/state_memory.h"

#include <set>

namespace bloomery {

StateMemory expected_state(Rank& rank) {
  const DType dtype = rank.options().dtype;
  const auto exact = static_cast<std::int64_t>(size_of(accumulation_dtype(dtype)));
  const auto value = static_cast<std::int64_t>(size_of(dtype));
  const int moments = rank.options().optimizer.kind == OptimizerKind::sgd ? 1 : 2;
  const Sharding& sharded = rank.store().sharded();
  StateMemory bytes;
  std::set<const Parameter*> counted;  // a tied weight is listed by two chunks
  for (const Parameter* parameter : rank.parameters()) {
    if (!counted.insert(parameter).second) {
      continue;
    }
    const std::int64_t count = parameter->local_shape.numel();
    const int holders = rank.mesh().size(parameter->grad_axes);
    const auto held = [&](bool is_sharded) { return count / (is_sharded ? holders : 1); };
    bytes.parameters += value * held(sharded.values);
    if (!parameter->frozen) {
      bytes.gradients += exact * held(sharded.gradients);
      bytes.optimizer += exact * (moments + (value < exact ? 1 : 0)) * held(sharded.optimizer);
    }
  }
  return bytes;
}

StateMemory allocated_state(Rank& rank) {
  const StoreBytes store = rank.store().bytes();
  return {.parameters = static_cast<std::int64_t>(store.values),
          .gradients = static_cast<std::int64_t>(store.gradients),
          .optimizer = static_cast<std::int64_t>(store.master + rank.optimizer().moment_bytes())};
}

}  // namespace bloomery
