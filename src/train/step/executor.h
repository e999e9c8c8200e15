// Runs the instructions of a pipeline stage: a tape per (chunk, micro-batch), and transfers of what
// passes between stages.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "autograd/context.h"
#include "autograd/metrics.h"
#include "pipeline/schedule.h"
#include "train/step/step_input.h"

namespace bloomery {

class FlightRecorder;
class InstructionClock;
class Model;
class Stage;
class Teacher;
class Timers;

// Gets what forward passes report: after each one of the model's last chunk, and of others that
// reported something.
class PassReader {
 public:
  virtual ~PassReader() = default;
  virtual void read(const Batch& batch, const Metrics& metrics) = 0;
};

// What a list of instructions is run on.
struct ExecutorWork {
  BatchSource batch;
  PassReader& reader;
  Tensor grad_scale;           // Batch::grad_scale
  bool training = true;        // with tapes and dropout
  Teacher* teacher = nullptr;  // that the model learns from besides the labels; null: none
  // Gets the parameters to which passes contribute, in order; null: nobody asks.
  std::vector<Parameter*>* contributions = nullptr;
};

struct TapeReport {
  std::string entries;  // Tape::describe()
  std::size_t saved_bytes = 0;
};

class Executor {
 public:
  explicit Executor(Stage& stage);  // which must outlive it
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
  const Model& chunk(const Instruction& instruction) const;
  Context context(InFlight& flight, const ExecutorWork& work) const;
  Batch loaded(std::int64_t micro_batch, const ExecutorWork& work) const;
  State empty_input(const Model& model, InFlight& flight, const ExecutorWork& work) const;
  std::vector<View> buffers(const Instruction& transfer, InFlight& flight,
                            const ExecutorWork& work);
  void retire(const Instruction& instruction, const ExecutorWork& work);

  Stage& stage_;
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
