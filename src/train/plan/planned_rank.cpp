#include "train/plan/planned_rank.h"

#include <algorithm>

#include "train/step/teacher.h"

namespace bloomery {

RankOptions abstract_rank(const Plan& plan, DeviceKind stands_for) {
  RankOptions options = plan.rank;
  options.device = {.kind = DeviceKind::abstract, .stands_for = stands_for};
  options.graphs = GraphChoice::automatic;  // there is nothing to replay
  return options;
}

void take_planned_step(Rank& rank, const Plan& plan, const SampleFields& fields,
                       std::int64_t completed_steps) {
  const BatchUpload upload(rank.stream(), fields, plan.micro_batch, rank.stage().sequence_share());
  // Whose numbers nobody reads.
  const HostBatch samples(DeviceKind::cpu, upload.fields(), plan.micro_batch);
  // The second micro-batch adds to gradients, and a pipeline is full after two rounds of its
  // stages; the ones after that are like those before.
  const std::int64_t most = plan.batch.global() / (plan.micro_batch * plan.data_ranks);
  rank.enqueue_gradients(
      {.num_micro_batches = std::min<std::int64_t>(most, 2 * plan.rank.layout.degrees.pipeline),
       .batch = [&](std::int64_t) { return upload.enqueue(samples); },
       .completed_steps = completed_steps});
  rank.enqueue_reduction();
  rank.enqueue_update(1);
}

namespace {

PlannedMemory plan_rank(const Plan& plan, const SampleFields& fields, DeviceKind kind, int number) {
  const MeshDegrees& degrees = plan.rank.layout.degrees;
  Rank rank(abstract_rank(plan, kind), make_abstract_communicator(number, degrees.num_ranks()));
  const std::size_t state_on_host =
      rank.stage().host() == nullptr ? 0 : rank.stage().host()->used_bytes();
  // At the end of the run layers have their grids.
  take_planned_step(rank, plan, fields, plan.rank.layer_drop ? 0 : plan.last_iteration);
  const StoreBytes store = rank.store().bytes();
  PlannedMemory memory;
  memory.parameters = static_cast<std::int64_t>(store.values);
  if (rank.stage().quantized() != nullptr) {
    memory.parameters += static_cast<std::int64_t>(rank.stage().quantized()->bytes());
  }
  if (rank.stage().teacher() != nullptr) {
    memory.parameters += static_cast<std::int64_t>(rank.stage().teacher()->store().bytes().values);
  }
  memory.gradients = static_cast<std::int64_t>(store.gradients);
  memory.optimizer = static_cast<std::int64_t>(store.master + rank.optimizer().state_bytes());
  memory.in_files = rank.stage().files() == nullptr
                        ? 0
                        : static_cast<std::int64_t>(rank.stage().files()->used_bytes());
  memory.on_host = rank.stage().host() == nullptr
                       ? 0
                       : static_cast<std::int64_t>(rank.stage().host()->peak_bytes());
  memory.state_on_host = static_cast<std::int64_t>(state_on_host);
  memory.activations =
      static_cast<std::int64_t>(rank.stream().memory()->statistics().peak_used_bytes) -
      memory.total();
  return memory;
}

}  // namespace

// Of a pipeline the first stage holds the most micro-batches, and the last the head.
PlannedMemory plan_memory(const Plan& plan, const SampleFields& fields, DeviceKind kind) {
  const PlannedMemory first = plan_rank(plan, fields, kind, 0);
  if (plan.rank.layout.degrees.pipeline == 1) {
    return first;
  }
  const PlannedMemory last =
      plan_rank(plan, fields, kind, plan.rank.layout.degrees.num_ranks() - 1);
  return first.total() >= last.total() ? first : last;
}

}  // namespace bloomery
