#include "train/planned_rank.h"

#include <algorithm>

namespace bloomery {

RankOptions rank_options(const Plan& plan, const DeviceOptions& device, std::int64_t seed) {
  RankOptions o;
  o.model = plan.model;
  o.recompute = plan.recompute;
  o.optimizer = plan.optimizer;
  o.dtype = plan.dtype;
  o.device = device;
  o.seed = static_cast<std::uint64_t>(seed);
  o.layout = plan.layout;
  return o;
}

PlannedMemory plan_memory(const Plan& plan, const SampleFields& fields, DeviceKind kind) {
  Rank rank(rank_options(plan, {.kind = DeviceKind::abstract, .stands_for = kind}, 0),
            make_abstract_communicator(0, plan.layout.degrees.num_ranks()));
  const BatchUpload upload(rank.stream(), fields, plan.micro_batch);
  const HostBatch samples(DeviceKind::cpu, fields, plan.micro_batch);  // whose numbers nobody reads
  // The second micro-batch adds to gradients; the ones after it are like it.
  const std::int64_t most = plan.batch.global() / (plan.micro_batch * plan.data_ranks);
  rank.enqueue_gradients(std::min<std::int64_t>(most, 2),
                         [&](std::int64_t) { return upload.enqueue(samples); });
  rank.enqueue_reduction();
  rank.enqueue_update(1);
  const StoreBytes store = rank.store().bytes();
  PlannedMemory memory;
  memory.parameters = static_cast<std::int64_t>(store.values);
  memory.gradients = static_cast<std::int64_t>(store.gradients);
  memory.optimizer = static_cast<std::int64_t>(store.master + rank.optimizer().moment_bytes());
  memory.activations =
      static_cast<std::int64_t>(rank.stream().memory()->statistics().peak_used_bytes) -
      memory.total();
  return memory;
}

}  // namespace bloomery
