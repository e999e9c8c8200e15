#include "train/planned_rank.h"

#include <algorithm>

namespace bloomery {

RankOptions rank_options(const Plan& plan, const DeviceOptions& device, std::int64_t seed) {
  RankOptions o;
  o.model = plan.model;
  o.recompute = plan.recompute;
  o.optimizer = plan.optimizer;
  o.dtype = plan.dtype;
  o.fp8 = plan.fp8;
  o.device = device;
  o.seed = static_cast<std::uint64_t>(seed);
  o.layout = plan.layout;
  o.replicas = plan.replicas;
  return o;
}

namespace {

PlannedMemory plan_rank(const Plan& plan, const SampleFields& fields, DeviceKind kind, int number) {
  const MeshDegrees& degrees = plan.layout.degrees;
  Rank rank(rank_options(plan, {.kind = DeviceKind::abstract, .stands_for = kind}, 0),
            make_abstract_communicator(number, degrees.num_ranks()));
  const BatchUpload upload(rank.stream(), fields, plan.micro_batch);
  const HostBatch samples(DeviceKind::cpu, fields, plan.micro_batch);  // whose numbers nobody reads
  // The second micro-batch adds to gradients, and a pipeline is full after two rounds of its
  // stages; the ones after that are like those before.
  const std::int64_t most = plan.batch.global() / (plan.micro_batch * plan.data_ranks);
  rank.enqueue_gradients(std::min<std::int64_t>(most, 2 * degrees.pipeline),
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

}  // namespace

// Of a pipeline the first stage holds the most micro-batches, and the last the head.
PlannedMemory plan_memory(const Plan& plan, const SampleFields& fields, DeviceKind kind) {
  const PlannedMemory first = plan_rank(plan, fields, kind, 0);
  if (plan.layout.degrees.pipeline == 1) {
    return first;
  }
  const PlannedMemory last = plan_rank(plan, fields, kind, plan.layout.degrees.num_ranks() - 1);
  return first.total() >= last.total() ? first : last;
}

}  // namespace bloomery
