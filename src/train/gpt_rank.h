// One rank that trains a GPT: model, flat buffers, optimizer, and a step of one or more
// micro-batches. What the trainer, tests and `bloomery bench gpt` run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/model.h"
#include "optim/optimizer.h"
#include "tensor/readback.h"
#include "train/batch_upload.h"
#include "zero/layout.h"

namespace bloomery {

class Timers;

struct RankOptions {
  ModelOptions model;
  RecomputeOptions recompute;
  OptimizerOptions optimizer;
  DType dtype = DType::fp32;
  DeviceOptions device;
  std::uint64_t seed = 1234;
  bool training = true;  // dropout is active
};

class GptRank {
  struct TapeReport {
    std::string entries;  // Tape::describe()
    std::size_t saved_bytes = 0;
  };

 public:
  GptRank(const RankOptions& options, const MeshDegrees& degrees,
          std::unique_ptr<Communicator> world);

  struct Result {
    double loss = 0;
    double grad_norm = 0;
  };
  // Gradients of the micro-batches, averaged; returns their mean loss. Waits for the device.
  double accumulate(std::span<const HostBatch> micro_batches);
  Result step(std::span<const HostBatch> micro_batches);  // and one optimizer update

  // A step without waiting: what it found stays on the device until outcome() asks for it.
  // `batch` gives this rank's micro-batch of a number, on the device, when its turn comes.
  using BatchSource = std::function<Batch(std::int64_t micro_batch)>;
  // This rank's part of the gradients of the mean loss over all ranks' micro-batches.
  void enqueue_gradients(std::int64_t num_micro_batches, const BatchSource& batch);
  void enqueue_reduction();  // the sum of the parts over the data-parallel ranks
  // The optimizer's update. The schedule advances by `schedule_units`. `stop` is this rank's wish
  // to end the run: outcome() says on every rank, for the same step, whether any had it.
  void enqueue_update(std::int64_t schedule_units, bool stop = false);

  // Each micro-batch's passes are timed as "forward-compute" and "backward-compute", level 2.
  void time_passes(Timers& timers) { timers_ = &timers; }

  struct Outcome {
    double loss = 0;  // mean over micro-batches and data-parallel ranks
    bool stop = false;
    StepReport update;
  };
  // Of the step before the last `age` ones.
  Outcome outcome(int age) const;

  // Mean loss without gradients and dropout, over the ranks too. Waits for the device.
  double evaluate(std::int64_t num_micro_batches, const BatchSource& batch);

  Stream& stream() { return *stream_; }
  Mesh& mesh() { return *mesh_; }
  Model& model() { return *model_; }
  FlatLayout& layout() { return *layout_; }
  const RankOptions& options() const { return options_; }
  Context context(const Batch& batch, Tape* tape);
  // What the tape kept for backward in the last micro-batch. It takes time to say, so it must be
  // asked for before that.
  void report_tape() { tape_report_ = TapeReport{}; }
  const std::string& tape_report() const { return tape_report_.value().entries; }
  std::size_t saved_bytes() const { return tape_report_.value().saved_bytes; }
  Optimizer& optimizer() { return *optimizer_; }

 private:
  double mean_loss();  // of the statistics, over the ranks; waits for the device
  Tensor compute_loss(Context& context);
  void add_loss(const Tensor& loss, std::int64_t num_micro_batches);

  RankOptions options_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Mesh> mesh_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<FlatLayout> layout_;
  std::unique_ptr<Optimizer> optimizer_;
  Tensor statistics_;  // of the step in work: mean loss, and how many ranks want to stop
  Tensor one_;
  std::unique_ptr<Readback> readback_;
  Timers* timers_ = nullptr;
  std::optional<TapeReport> tape_report_;
};

}  // namespace bloomery
