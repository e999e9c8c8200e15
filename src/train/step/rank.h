// One rank that trains a model: its stage (what lives here), the runner of its passes, and the
// board of losses. What the trainer, tests and `bloomery bench train` run.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "train/step/batch_upload.h"
#include "train/step/stage.h"
#include "train/step/step_runner.h"

namespace bloomery {

class Rank {
 public:
  // Collective over `world`, which has the layout's number of ranks.
  explicit Rank(const RankOptions& options,
                std::unique_ptr<Communicator> world = make_self_communicator());
  ~Rank();

  using Losses = bloomery::Losses;
  struct Result {
    double loss = 0;
    double grad_norm = 0;
  };
  // Gradients of the micro-batches, averaged; returns their mean loss. Waits for the device.
  double accumulate(std::span<const HostBatch> micro_batches);
  Result step(std::span<const HostBatch> micro_batches);  // and one optimizer update
  // This rank's part of a micro-batch. Waits for the copies.
  Batch upload(const HostBatch& samples) {
    return bloomery::upload(samples, stream(), stage_.sequence_share());
  }

  // A step without waiting: what it found stays on the device until outcome() asks for it.
  // This rank's part of the gradients of the mean loss over all ranks' micro-batches.
  void enqueue_gradients(const StepInput& input);
  void enqueue_reduction();  // what is left of summing the parts
  // The optimizer's update. The schedule advances by `schedule_units`. `stop` is this rank's wish
  // to end the run: outcome() says on every rank, for the same step, whether any had it.
  void enqueue_update(std::int64_t schedule_units, bool stop = false);

  struct Outcome {
    double loss = 0;  // the first of `losses`
    Losses losses;    // means over micro-batches and data-parallel ranks; of a student their
                      // sum, the "total loss", first
    bool stop = false;
    StepReport update;
    // By the device's clock, from the end of the step before, or from the step's own beginning
    // after StepClock::restart().
    double seconds = 0;
    double waited = 0;  // of them, at the end of backward, for sums of gradients
  };
  // Of the step before the last `age` ones.
  Outcome outcome(int age);

  // Mean losses without gradients and dropout, over the ranks too. Waits for the device.
  Losses evaluate(const StepInput& input);

  // The outputs of a task's head for this rank's samples, or of a retriever the ranks of their
  // contexts (Metrics::context_ranks), one after another, without gradients and dropout; empty
  // where the head is on another stage. Waits for the device.
  std::vector<float> answers(const StepInput& input);

  // Of pairs: how likely the answers of this rank's micro-batches are, without dropout, each with
  // its number: twice that of the pair's sample, one more if rejected. Nothing on ranks without the
  // head. Waits for the device.
  struct AnswerLogps {
    std::vector<std::int64_t> answers;
    std::vector<float> logps;
  };
  AnswerLogps answer_logps(const StepInput& input);

  // Where this rank is, for reports of a hang. The text is a literal.
  void set_position(std::int64_t iteration, const char* work);

  Stage& stage() { return stage_; }
  const Stage& stage() const { return stage_; }
  StepRunner& runner() { return runner_; }
  // Of the stage.
  const RankOptions& options() const { return stage_.options(); }
  Stream& stream() { return stage_.stream(); }
  Mesh& mesh() { return stage_.mesh(); }
  const Model& model() const { return *stage_.chunks().front(); }  // the first chunk
  const ParameterList& parameters() const { return stage_.parameters(); }
  ParameterStore& store() { return stage_.store(); }
  Optimizer& optimizer() { return stage_.optimizer(); }
  Context context(const Batch& batch, Tape* tape) {
    return stage_.context(batch, stage_.features().features(), tape, true);
  }

 private:
  void set_work(const char* work);

  Stage stage_;
  LossBoard losses_;
  StepRunner runner_;
  FlightRecorder* const recorder_;  // of where this rank is; null: nobody asks
};

}  // namespace bloomery
