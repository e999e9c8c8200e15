// Runs the instructions of a pipeline stage: a tape per (chunk, micro-batch), and transfers of what
// passes between stages.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "autograd/metrics.h"
#include "models/model.h"
#include "pipeline/schedule.h"
#include "zero/reducer.h"

namespace bloomery {

class FlightRecorder;
class InstructionClock;
class Timers;

// What the executor works with; all of it must outlive it.
struct ExecutorParts {
  Stream& stream;
  Mesh& mesh;
  ParameterStore& store;
  Reducer& reducer;
  std::vector<const Model*> chunks;  // of this stage
  RecomputeOptions recompute;
  std::int64_t sequence_chunk;  // RankOptions
  std::function<Context(const Batch& batch, Tape* tape)> context;
};

// What a list of instructions is run on.
struct ExecutorWork {
  // This rank's micro-batch of a number, on the device; asked for once each, in rising order.
  std::function<Batch(std::int64_t micro_batch)> batch;
  Tensor grad_scale;     // Batch::grad_scale
  bool training = true;  // with tapes and dropout
  // Before each forward pass of the model's last chunk, if given.
  std::function<void(const Batch& batch)> prepare;
  // After each forward pass of the model's last chunk, and of others that reported something.
  std::function<void(const Batch& batch, const Metrics& metrics)> report;
  // Gets the parameters to which passes contribute, in order; null: nobody asks.
  std::vector<Parameter*>* contributions = nullptr;
};

struct TapeReport {
  std::string entries;  // Tape::describe()
  std::size_t saved_bytes = 0;
};

class Executor {
 public:
  explicit Executor(ExecutorParts parts);
  ~Executor();

  void run(std::span<const Instruction> list, const ExecutorWork& work);

  // Each pass is timed as "forward-compute" or "backward-compute", level 2.
  void time_passes(Timers& timers) { timers_ = &timers; }
  void time_instructions(InstructionClock* clock) { clock_ = clock; }  // null: no longer
  // Whether somebody wants to know what happens within passes: they must be launched then.
  bool observed() const;
  // What the tape kept for backward in the last micro-batch, if somebody asked before.
  std::optional<TapeReport> tape_report;

 private:
  struct InFlight;
  using Key = std::pair<int, std::int64_t>;  // chunk, micro-batch

  InFlight& in_flight(const Instruction& instruction, const ExecutorWork& work);
  void run_step(std::span<const Instruction> step, const ExecutorWork& work);
  void compute(const Instruction& instruction, const ExecutorWork& work);
  void forward(InFlight& flight, const Model& model, const ExecutorWork& work);
  void backward(InFlight& flight, Instruction::Work part);
  void exchange(std::span<const Instruction> transfers, const ExecutorWork& work);
  State empty_input(const Model& model, InFlight& flight) const;
  std::vector<View> buffers(const Instruction& transfer, InFlight& flight);
  void land(const Instruction& instruction, const ExecutorWork& work);

  ExecutorParts parts_;
  FlightRecorder* const recorder_;  // of where this rank is; null: nobody asks
  Timers* timers_ = nullptr;
  InstructionClock* clock_ = nullptr;
  std::map<Key, std::unique_ptr<InFlight>> in_flight_;
  struct Loaded {
    std::unique_ptr<Batch> batch;
    std::size_t chunks_left = 0;
  };
  std::map<std::int64_t, Loaded> loaded_;  // by micro-batch
};

}  // namespace bloomery
