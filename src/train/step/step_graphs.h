// The passes of a rank's micro-batches as CUDA graphs: one of the first micro-batch of a step,
// whose gradients overwrite, and one of the others, whose gradients are added.
//
// Graphs have no memory of their own. What a pass takes from the stream's pool it gives back, so a
// replay may write there as long as nobody else holds memory that was free at the capture: which is
// so when as many blocks at the same places are in use as then (MemorySource::in_use). Otherwise
// passes are launched. So launched and replayed micro-batches may follow each other in any order,
// and evaluations use the same memory.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "autograd/parameter.h"
#include "train/step/batch_slots.h"
#include "train/step/graph_choice.h"

namespace bloomery {

class StepGraphs {
 public:
  // The stream must outlive this.
  StepGraphs(Stream& stream, GraphChoice choice);

  // Launches both passes of a micro-batch that lies in the slots, and notes which parameters get
  // gradients, in order.
  using LaunchPasses =
      std::function<void(std::int64_t micro_batch, std::vector<Parameter*>* contributions)>;

  // A step of so many micro-batches on all ranks together begins. Whether its passes are to be
  // captured now: then capture() comes before its first micro-batch.
  bool begin_step(std::int64_t num_parts);
  // Runs nothing. What fails ends the trial: passes are launched from then on.
  void capture(std::int64_t num_micro_batches, const LaunchPasses& launch);
  // The micro-batch that comes next.
  void fill(const Batch& batch);
  // Replays its passes. The parameters that got gradients; null: the passes are to be launched.
  const std::vector<Parameter*>* replay(std::int64_t micro_batch);
  // Whether the step says something about launched or replayed steps.
  GraphTrial::Step end_step();

  const Batch& batch() const { return slots_.batch(); }
  // fp32 [1], Batch::grad_scale of the step.
  const Tensor& grad_scale() const { return grad_scale_; }
  // Whether steps are to come here: not once launching them has turned out to be faster.
  bool wanted() const { return !trial_.settled() || trial_.wants_graphs(); }
  const GraphTrial& trial() const { return trial_; }
  // Of an earlier step of so many micro-batches on all ranks together.
  void add_time(GraphTrial::Step kind, std::int64_t num_parts, double seconds);

 private:
  struct Passes {
    Graph graph;
    std::vector<Parameter*> contributions;
  };
  // What graphs must find as it was when they were captured.
  struct MemoryState {
    std::uint64_t in_use = 0;    // memory
    std::int64_t num_parts = 0;  // a factor of losses and gradients
    bool operator==(const MemoryState&) const = default;
  };
  MemoryState memory_state() const;
  std::int64_t num_device_calls() const;
  void drop();

  Stream& stream_;
  GraphTrial trial_;
  BatchSlots slots_;
  Tensor grad_scale_;
  // Of the first micro-batch; of the others. Null: not captured.
  std::array<std::unique_ptr<Passes>, 2> passes_;
  MemoryState captured_on_;
  int num_captures_ = 0;

  std::int64_t num_parts_ = 0;  // of the step in work, as all that follows
  MemoryState begun_on_;
  std::int64_t device_calls_ = 0;  // of the pool, when it began
  bool steady_ = false;            // it began as the one before it did
  bool captures_ = false;
  int num_launched_ = 0, num_replayed_ = 0;  // micro-batches
  GraphTrial::Step last_ = GraphTrial::Step::other;
};

// Null: passes are always launched.
std::unique_ptr<StepGraphs> make_step_graphs(const RankOptions& options, int num_ranks,
                                             Stream& stream);

}  // namespace bloomery
