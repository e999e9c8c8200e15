// The optimizer of one rank: update rules over flat shards, from gradients to weights, on the
// device and without waiting for the host. A step is
//
//   optimizer.step(groups, samples);
//
// or, in pieces, squared_norm() -> sum over the ranks -> update() -> publish_report().
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "optim/host_update.h"
#include "optim/step_plan.h"
#include "tensor/readback.h"

namespace bloomery {

struct OptimizerOptions {
  OptimizerRule rule = Adam{};
  double clip = 1.0;  // of the global gradient norm; 0: off
  ScheduleOptions schedule;
  LossScaleOptions loss_scale;
};

// What one step did, as logs want it.
struct StepReport {
  bool skipped = false;           // gradients were not finite; nothing was changed
  std::int64_t num_steps = 0;     // updates applied so far
  std::int64_t num_samples = 0;   // position in the schedule
  std::int64_t num_skipped = 0;   // steps skipped so far
  double grad_norm = 0;           // before clipping, without the loss scale
  double clip_coefficient = 1;    // what gradients were multiplied by
  double learning_rate = 0;       // used in the step
  double next_learning_rate = 0;  // what Megatron logs
  double weight_decay = 0;
  double loss_scale = 1;         // of the next step, as Megatron logs it
  bool scale_exhausted = false;  // overflow at the smallest loss scale, no tolerance left
};

class Optimizer {
 public:
  // Everything runs on `stream`, but for what lies on the host (HostUpdate, which has `copies`);
  // both must outlive the optimizer.
  Optimizer(Stream& stream, const OptimizerOptions& options, std::vector<FlatShard> shards,
            Stream* copies = nullptr);
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // The whole step. The squared norm is summed over each of the groups in turn; together they must
  // count every element of the model once (kUnitUncounted marks copies). `samples` is how far the
  // schedule advances.
  void step(std::span<Communicator* const> groups, std::int64_t samples);

  // fp64 [1] on the device: squared norm of the shards' gradients, not finite when one of them is
  // not. To be summed over ranks in place, before update().
  const Tensor& squared_norm();
  // Decides and applies the step. May be captured in a graph, as squared_norm() may.
  void update(std::int64_t samples);
  // Starts the copy that report() reads. Not in a graph: report() waits for an event of the copy.
  void publish_report();

  // The published report before the last `age` ones. The host waits until the device has come
  // that far: age 1, read after launching the next step, normally waits for nothing.
  StepReport report(int age = 1) const;

  // fp32 [1] on the device: the scale of the loss in the next step.
  const Tensor& loss_scale() const { return loss_scale_; }
  // Loss scale / num_parts as a device scalar, for Batch::grad_scale: the gradient of a mean over
  // that many micro-batches (and data-parallel ranks).
  Tensor grad_scale(std::int64_t num_parts);

  // Not while the host updates some of them: it waits for that.
  const std::vector<FlatShard>& shards() const;
  // Of the shards that lie on the host; null: there are none.
  HostUpdate* on_host() const { return on_host_.get(); }
  // For checkpoints; both wait for the device.
  StepState state() const;
  void set_state(const StepState& state);

  // What it keeps of each element, in the order of FlatShard::state.
  std::span<const StateTensor> state_tensors() const { return state_of(options_.rule); }
  std::size_t state_bytes() const;  // of these, on the device

 private:
  StepState* device_state() const;
  void add_state(FlatShard& shard) const;

  Stream* stream_;
  OptimizerOptions options_;
  StepRules rules_;
  std::vector<FlatShard> shards_;
  Tensor partials_, squared_norm_, state_, loss_scale_;
  Readback reports_;  // of the state
  std::unique_ptr<HostUpdate> on_host_;
};

}  // namespace bloomery
