// One rank that trains a model: its slice of the model, the parameters' memory, the optimizer, and
// a step of one or more micro-batches. What the trainer, tests and `bloomery bench train` run.
#pragma once

#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "device/host_side.h"
#include "nn/layer_dropping.h"
#include "ops/fp8/fp8_layers.h"
#include "ops/loss/preference.h"
#include "ops/quantized/quantized_weights.h"
#include "parallel/grid_layers.h"
#include "tensor/readback.h"
#include "train/report/iteration_line.h"
#include "train/step/batch_upload.h"
#include "train/step/executor.h"
#include "train/step/graph_choice.h"
#include "train/step/offload_options.h"
#include "train/step/teacher_options.h"
#include "zero/replica_options.h"

namespace bloomery {

struct RankOptions {
  ModelOptions model;
  RecomputeOptions recompute;
  OptimizerOptions optimizer;
  DType dtype = DType::fp32;
  std::optional<Fp8Options> fp8;  // of the linear layers in blocks; with bf16 alone
  // Of the frozen weights of linear layers in blocks; none: values.
  QuantizedFormat quantized_base = QuantizedFormat::none;
  std::optional<TeacherOptions> teacher;        // that the model learns from besides the labels
  std::optional<PreferenceOptions> preference;  // batches are pairs, and this is their loss
  std::vector<int> token_dropping_layers;       // of random-LTD
  std::optional<LayerDropOptions> layer_drop;
  GridsOfWeights grids;             // of linear layers in blocks that compute with few bits
  std::int64_t sequence_chunk = 0;  // tokens that layers compute at once; 0: all
  DeviceOptions device;
  std::uint64_t seed = 1234;
  // Initial values may be made while the constructor's caller does other things: nothing reads or
  // writes weights before await_initial_values().
  bool initialize_beside = false;
  bool training = true;  // dropout is active
  GraphChoice graphs = GraphChoice::automatic;
  Layout layout;
  ReplicaOptions replicas;
  OffloadOptions offload;
};

class StepGraphs;
class Teacher;

class Rank {
 public:
  // Collective over `world`, which has the layout's number of ranks.
  explicit Rank(const RankOptions& options,
                std::unique_ptr<Communicator> world = make_self_communicator());
  ~Rank();

  void await_initial_values();

  using Losses = std::vector<NamedLoss>;  // those that are trained on first
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
  // Tokens of each sequence that the layers of random-LTD compute in the next steps; 0: all.
  void set_kept_tokens(std::int64_t kept);
  // How many steps the run has taken, which grids and dropped layers follow; of a step that follows
  // or an evaluation.
  void set_completed_steps(std::int64_t steps) { completed_steps_ = steps; }
  // At the end of a run: weights that were rounded become what they were rounded to. Returns the
  // bits; 0: none are. Collective.
  int put_weights_on_grids();
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
    Losses losses;    // means over micro-batches and data-parallel ranks; of a student their
                      // sum, the "total loss", first
    bool stop = false;
    StepReport update;
    // By the device's clock, from the end of the step before, or from the step's own beginning
    // after restart_clock().
    double seconds = 0;
    double waited = 0;  // of them, at the end of backward, for sums of gradients
  };
  // Of the step before the last `age` ones.
  Outcome outcome(int age) const;

  // Whether passes are replayed as CUDA graphs in the next steps, as far as that depends on
  // earlier ones; they are launched where somebody times them, and where shapes have changed.
  bool replays_graphs() const;
  bool graphs_settled() const;        // for the rest of the run
  std::string graph_verdict() const;  // for logs, once it is settled; empty: nothing to say

  // What happens until the next step begins is no part of it (an evaluation, a save).
  void restart_clock() { last_end_.reset(); }

  // Mean losses without gradients and dropout, over the ranks too. Waits for the device.
  Losses evaluate(std::int64_t num_micro_batches, const BatchSource& batch);

  // The outputs of a task's head for this rank's samples, or of a retriever the ranks of their
  // contexts (Metrics::context_ranks), one after another, without gradients and dropout; empty
  // where the head is on another stage. Waits for the device.
  std::vector<float> answers(std::int64_t num_micro_batches, const BatchSource& batch);

  // Of pairs: how likely the answers of this rank's micro-batches are, without dropout, each with
  // its number: twice that of the pair's sample, one more if rejected. Nothing on ranks without the
  // head. Waits for the device.
  struct AnswerLogps {
    std::vector<std::int64_t> answers;
    std::vector<float> logps;
  };
  AnswerLogps answer_logps(std::int64_t num_micro_batches, const BatchSource& batch);

  Teacher* teacher() { return teacher_.get(); }  // null: there is none
  // Whether the next steps learn from the teacher; they do unless told otherwise.
  void set_taught(bool taught) { taught_ = taught; }

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
  StateFiles* files() { return files_.get(); }              // null: no state is in files
  HostSide* host() { return host_.get(); }                  // null: everything is on the device
  Fp8Layers* fp8() { return fp8_.get(); }                   // null: nothing is in 8 bits
  GridLayers* grid_layers() { return grid_layers_.get(); }  // null: nothing is rounded
  // Frozen weights, which the store does not have; null: all are values.
  QuantizedWeights* quantized() { return quantized_.get(); }
  const RankOptions& options() const { return options_; }
  Context context(const Batch& batch, Tape* tape);
  // What the tape kept for backward in the last micro-batch. It takes time to say, so it must be
  // asked for before that.
  void report_tape() { executor_->tape_report.emplace(); }
  const std::string& tape_report() const { return executor_->tape_report.value().entries; }
  std::size_t saved_bytes() const { return executor_->tape_report.value().saved_bytes; }

 private:
  void make_streams();
  void initialize_values();
  void quantize_base(std::vector<ParameterList>& blocks);
  void tell_layers();
  void prepare_offload();
  void prepare_fp8();
  void prepare_grids();
  ParameterList weights_in_layers() const;
  void check_whole(const char* what) const;
  void update_fp8_scales();
  StoreOptions store_options(const Ties* ties) const;
  PipelineShape pipeline_shape(std::int64_t num_micro_batches) const;
  void hear_of_failures();
  void clear_statistics();
  using Report = std::function<void(const Batch& batch, const Metrics& metrics)>;
  void run_forward(std::int64_t num_micro_batches, const BatchSource& batch, const Report& report);
  void set_work(const char* work);
  void add_losses(const Metrics& metrics, double factor);
  void report(const Metrics& metrics, double factor);
  std::int64_t place_of(const std::string& name);
  void sum_losses(const Tensor& statistics);
  void learn_loss_names();
  bool news_of_losses() const;
  bool knows_own_names() const;
  void begin_passes(std::int64_t num_micro_batches);
  void run_in_graphs(std::int64_t num_micro_batches, const BatchSource& batch, std::int64_t parts);
  void tell_graphs_of_times();
  ExecutorWork training_work(const BatchSource& batch, const Tensor& grad_scale,
                             std::int64_t parts);
  Losses named(const std::vector<double>& numbers) const;
  Losses mean_losses();  // of the statistics, over the ranks; waits for the device

  RankOptions options_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  // What streams beside the computation use: the layers', and that of gradients.
  KeptMemory kept_, kept_gradients_;
  std::unique_ptr<HostSide> host_;                            // null: everything is on the device
  std::unique_ptr<StateFiles> files_;                         // null: none
  std::unique_ptr<Stream> state_copies_, activation_copies_;  // to it and back; null: none
  std::unique_ptr<Mesh> mesh_;
  FlightRecorder* recorder_;  // of where this rank is; null: nobody asks
  std::vector<std::unique_ptr<Model>> chunks_;
  ParameterList parameters_;
  std::unique_ptr<QuantizedWeights> quantized_;
  std::unique_ptr<Ties> ties_;
  std::unique_ptr<ParameterStore> store_;
  std::unique_ptr<Teacher> teacher_;
  bool taught_ = true;
  // Beside the computation, null where there is nothing to do: what layers communicate, and sums of
  // gradients and gathers of values, which must not hold it up.
  std::unique_ptr<Stream> communication_, reductions_, gathers_;
  std::unique_ptr<Reducer> reducer_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Fp8Layers> fp8_;
  std::unique_ptr<GridLayers> grid_layers_;
  std::int64_t completed_steps_ = 0;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<StepGraphs> graphs_;  // null: passes are always launched
  // Of the step in work: mean losses, and behind them how many ranks want to stop.
  Tensor statistics_;
  std::vector<std::string> own_names_;   // in the order of the statistics
  std::vector<std::string> loss_names_;  // of all stages, in the order of summed statistics
  std::set<std::string> names_beside_;   // Metrics::Entry::beside
  std::int64_t num_updates_ = 0;
  Tensor one_;
  std::unique_ptr<Readback> readback_;
  // Where steps begin and end on the stream: the latest first.
  struct StepTime {
    std::shared_ptr<Event> begin, end;
    std::shared_ptr<Event> reduction_begin, reduction_end;
    GraphTrial::Step kind = GraphTrial::Step::other;
    std::int64_t parts = 0;  // micro-batches on all ranks together
  };
  std::deque<StepTime> times_;
  std::shared_ptr<Event> begin_, last_end_;  // of the step in work; of the one before, or null
  std::shared_ptr<Event> reduction_begin_, reduction_end_;  // of the step in work
  bool in_graphs_ = false;                                  // likewise: graphs_ has it
  std::int64_t parts_ = 0;                                  // likewise, as in StepTime
  std::future<void> initial_values_;  // on their way; the last member, for it is awaited first
};

}  // namespace bloomery
