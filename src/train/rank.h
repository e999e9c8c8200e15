// One rank that trains a model: its slice of the model, the parameters' memory, the optimizer, and
// a step of one or more micro-batches. What the trainer, tests and `bloomery bench gpt` run.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ops/fp8/fp8_layers.h"
#include "tensor/readback.h"
#include "train/batch_upload.h"
#include "train/executor.h"
#include "train/log/iteration_line.h"
#include "zero/replica_options.h"

namespace bloomery {

struct RankOptions {
  ModelOptions model;
  RecomputeOptions recompute;
  OptimizerOptions optimizer;
  DType dtype = DType::fp32;
  std::optional<Fp8Options> fp8;  // of the linear layers in blocks; with bf16 alone
  DeviceOptions device;
  std::uint64_t seed = 1234;
  bool training = true;  // dropout is active
  Layout layout;
  ReplicaOptions replicas;
};

class Rank {
 public:
  // Collective over `world`, which has the layout's number of ranks.
  explicit Rank(const RankOptions& options,
                std::unique_ptr<Communicator> world = make_self_communicator());
  ~Rank();

  using Losses = std::vector<NamedLoss>;  // the first is the one that is trained on
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
  void enqueue_reduction();  // what is left of summing the parts
  // The optimizer's update. The schedule advances by `schedule_units`. `stop` is this rank's wish
  // to end the run: outcome() says on every rank, for the same step, whether any had it.
  void enqueue_update(std::int64_t schedule_units, bool stop = false);

  void time_passes(Timers& timers) { executor_->time_passes(timers); }
  void time_instructions(InstructionClock* clock) { executor_->time_instructions(clock); }

  // Where this rank is, for reports of a hang. The text is a literal.
  void set_position(std::int64_t iteration, const char* work);

  struct Outcome {
    double loss = 0;  // the first of `losses`
    Losses losses;    // means over micro-batches and data-parallel ranks
    bool stop = false;
    StepReport update;
    // By the device's clock, from the end of the step before, or from the step's own beginning
    // after restart_clock().
    double seconds = 0;
    double waited = 0;  // of them, at the end of backward, for sums of gradients
  };
  // Of the step before the last `age` ones.
  Outcome outcome(int age) const;

  // What happens until the next step begins is no part of it (an evaluation, a save).
  void restart_clock() { last_end_.reset(); }

  // Mean losses without gradients and dropout, over the ranks too. Waits for the device.
  Losses evaluate(std::int64_t num_micro_batches, const BatchSource& batch);

  // A second model that is not trained (a teacher, the reference of preference tuning). It runs on
  // every micro-batch, without dropout, and its losses come after those of the trained model as
  // "<name> <loss>". Its parameters start as those of a rank with this seed; they have values only.
  const Model& add_frozen(const std::string& name, const ModelOptions& options, std::uint64_t seed);

  Stream& stream() { return *stream_; }
  // Beside the computation; null: nothing to do.
  Stream* communication_stream() { return communication_.get(); }
  Stream* reductions_stream() { return reductions_.get(); }
  Stream* gathers_stream() { return gathers_.get(); }
  Mesh& mesh() { return *mesh_; }
  const Model& model() const { return *chunks_.front(); }          // the first chunk of this stage
  const ParameterList& parameters() const { return parameters_; }  // of all its chunks
  ParameterStore& store() { return *store_; }
  const Ties& ties() const { return *ties_; }
  Optimizer& optimizer() { return *optimizer_; }
  Fp8Layers* fp8() { return fp8_.get(); }  // null: nothing is in 8 bits
  const RankOptions& options() const { return options_; }
  Context context(const Batch& batch, Tape* tape);
  // What the tape kept for backward in the last micro-batch. It takes time to say, so it must be
  // asked for before that.
  void report_tape() { executor_->tape_report.emplace(); }
  const std::string& tape_report() const { return executor_->tape_report.value().entries; }
  std::size_t saved_bytes() const { return executor_->tape_report.value().saved_bytes; }

 private:
  struct FrozenModel;

  void prepare_fp8();
  void update_fp8_scales();
  StoreOptions store_options(const Ties* ties) const;
  PipelineShape pipeline_shape(std::int64_t num_micro_batches) const;
  void hear_of_failures();
  void clear_statistics();
  void set_work(const char* work);
  void add_losses(const std::string& prefix, const Metrics& metrics, double factor);
  void report(const Batch& batch, const Metrics& metrics, double factor);
  void sum_losses(const Tensor& statistics);
  void learn_loss_names();
  Losses named(const std::vector<double>& numbers) const;
  Losses mean_losses();  // of the statistics, over the ranks; waits for the device

  RankOptions options_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  // What streams beside the computation use: the layers', and that of gradients.
  KeptMemory kept_, kept_gradients_;
  std::unique_ptr<Mesh> mesh_;
  FlightRecorder* recorder_;  // of where this rank is; null: nobody asks
  std::vector<std::unique_ptr<Model>> chunks_;
  ParameterList parameters_;
  std::unique_ptr<Ties> ties_;
  std::unique_ptr<ParameterStore> store_;
  std::vector<std::unique_ptr<FrozenModel>> frozen_;
  // Beside the computation, null where there is nothing to do: what layers communicate, and sums of
  // gradients and gathers of values, which must not hold it up.
  std::unique_ptr<Stream> communication_, reductions_, gathers_;
  std::unique_ptr<Reducer> reducer_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Fp8Layers> fp8_;
  std::unique_ptr<Executor> executor_;
  // Of the step in work: mean losses, and behind them how many ranks want to stop.
  Tensor statistics_;
  std::vector<std::string> loss_names_;
  bool knows_loss_names_ = false;  // also those that another stage reports
  std::size_t num_reported_ = 0;   // losses of the micro-batch in work
  Tensor one_;
  std::unique_ptr<Readback> readback_;
  // Where steps begin and end on the stream: the latest first.
  struct StepTime {
    std::shared_ptr<Event> begin, end;
    std::shared_ptr<Event> reduction_begin, reduction_end;
  };
  std::deque<StepTime> times_;
  std::shared_ptr<Event> begin_, last_end_;  // of the step in work; of the one before, or null
  std::shared_ptr<Event> reduction_begin_, reduction_end_;  // of the step in work
};

}  // namespace bloomery
