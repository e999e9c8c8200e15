#include "train/executor.h"

#include "comm/watch/recorded.h"
#include "parallel/ulysses.h"
#include "train/profile/instruction_clock.h"
#include "train/timers.h"

namespace bloomery {
namespace {

using Work = Instruction::Work;

Timers::Scope timed(Timers* timers, const char* name) {
  constexpr std::int64_t kLevelOfPasses = 2;
  return timers != nullptr ? timers->scope(kLevelOfPasses, name) : Timers::Scope(nullptr, name);
}

bool is_receive(const Instruction& i) {
  return i.work == Work::receive_activation || i.work == Work::receive_gradient;
}

}  // namespace

// One micro-batch on its way through one chunk.
struct Executor::InFlight {
  const Batch* batch = nullptr;
  std::optional<Tape> tape;  // none: forward alone
  WeightQueue weights;       // put off by backward_input
  State input, output;       // between stages; the ends of the model have none
  Tensor output_grad;        // as it was received
  bool passes_done = false;  // all passes of this chunk
  bool sent = false;         // what they gave to another stage
};

Executor::Executor(ExecutorParts parts)
    : parts_(std::move(parts)), recorder_(recorder_of(parts_.mesh.world())) {}
Executor::~Executor() = default;

void Executor::run(std::span<const Instruction> list, const ExecutorWork& work) {
  in_flight_.clear();  // of a run that an exception ended
  loaded_.clear();
  for (const std::span<const Instruction> step : steps(list)) {
    run_step(step, work);
  }
}

void Executor::run_step(std::span<const Instruction> step, const ExecutorWork& work) {
  const Instruction& first = step.front();
  if (recorder_ != nullptr) {
    recorder_->set_work(name(first.work), first.micro_batch, first.chunk);
  }
  if (clock_ != nullptr) {
    clock_->begin(step);
  }
  if (first.is_transfer()) {
    exchange(step, work);
  } else {
    compute(first, work);
  }
  if (clock_ != nullptr) {
    clock_->end();
  }
}

Executor::InFlight& Executor::in_flight(const Instruction& instruction, const ExecutorWork& work) {
  std::unique_ptr<InFlight>& flight = in_flight_[{instruction.chunk, instruction.micro_batch}];
  if (!flight) {
    Loaded& loaded = loaded_[instruction.micro_batch];
    if (!loaded.batch) {
      loaded = {std::make_unique<Batch>(part_of_sequences(work.batch(instruction.micro_batch),
                                                          parts_.mesh, parts_.stream)),
                parts_.chunks.size()};
      loaded.batch->grad_scale = work.grad_scale;
    }
    flight = std::make_unique<InFlight>();
    flight->batch = loaded.batch.get();
    if (work.training) {
      Tape& tape = flight->tape.emplace(parts_.stream);
      tape.on_sink = [this](Parameter& parameter) { parts_.store.prepare_grad(parameter); };
      tape.on_contribution = [this, m = instruction.micro_batch](Parameter& parameter) {
        parts_.reducer.contributed(parameter, m);
      };
    }
  }
  return *flight;
}

// Forgets a micro-batch that nothing is left to be done with.
void Executor::land(const Instruction& instruction, const ExecutorWork& work) {
  const auto found = in_flight_.find({instruction.chunk, instruction.micro_batch});
  const Model& model = *parts_.chunks[static_cast<std::size_t>(instruction.chunk)];
  const bool sends = work.training ? !model.is_first() : !model.is_last();
  if (found->second->passes_done && (!sends || found->second->sent)) {
    in_flight_.erase(found);
    if (--loaded_.at(instruction.micro_batch).chunks_left == 0) {
      loaded_.erase(instruction.micro_batch);
    }
  }
}

void Executor::compute(const Instruction& instruction, const ExecutorWork& work) {
  const bool is_forward = instruction.work == Work::forward;
  {
    const Timers::Scope timer = timed(timers_, is_forward ? "forward-compute" : "backward-compute");
    InFlight& flight = in_flight(instruction, work);
    if (is_forward) {
      forward(flight, *parts_.chunks[static_cast<std::size_t>(instruction.chunk)], work);
    } else {
      backward(flight, instruction.work);
    }
  }
  land(instruction, work);
}

void Executor::forward(InFlight& flight, const Model& model, const ExecutorWork& work) {
  Context context = parts_.context(*flight.batch, flight.tape ? &*flight.tape : nullptr);
  context.training = context.training && work.training;
  Metrics metrics;
  context.metrics = &metrics;
  State output = model.forward(context, flight.input, parts_.recompute);
  if (!work.training) {
    flight.input = {};
  }
  if (model.is_last()) {
    work.report(*flight.batch, metrics);
  } else {
    check(metrics.entries().empty(), "only the last stage of a pipeline may report losses");
    flight.output = settle(context, std::move(output));
  }
  flight.passes_done = !work.training;
}

void Executor::backward(InFlight& flight, Work part) {
  Tape& tape = *flight.tape;
  if (part == Work::backward_weight) {
    flight.weights.run_all();
  } else {
    if (tape_report) {
      tape_report = {tape.describe(), tape.saved_bytes()};
    }
    if (flight.output_grad) {
      tape.set_grad(flight.output.stream.slot, std::exchange(flight.output_grad, {}));
    }
    tape.deferred = part == Work::backward_input ? &flight.weights : nullptr;
    tape.backward();
    flight.output = {};
  }
  flight.passes_done = part != Work::backward_input;
}

// The memory that a transfer fills or reads.
View Executor::buffer(const Instruction& transfer, InFlight& flight) {
  const Model& model = *parts_.chunks[static_cast<std::size_t>(transfer.chunk)];
  switch (transfer.work) {
    case Work::receive_activation: {
      const StateShape shape = model.state_shape(*flight.batch);
      check(shape.encoder.shape.rank() == 0, "pipelines of encoders and decoders are not built");
      const Context context = parts_.context(*flight.batch, flight.tape ? &*flight.tape : nullptr);
      flight.input.stream = context.output(shape.stream.dtype, shape.stream.shape);
      return flight.input.stream.data;
    }
    case Work::send_activation:
      return flight.output.stream.data;
    case Work::receive_gradient: {
      const GradSlot& slot = *flight.output.stream.slot;
      flight.output_grad = Tensor::empty(parts_.stream, slot.dtype, slot.shape);
      return flight.output_grad;
    }
    default: {
      const Tensor& grad = flight.input.stream.slot->grad;
      check(static_cast<bool>(grad), "a pipeline stage made no gradient of its input");
      return grad;
    }
  }
}

void Executor::exchange(std::span<const Instruction> transfers, const ExecutorWork& work) {
  const int stage = parts_.mesh.coordinate(Axis::pipeline);
  const int stages = parts_.mesh.degree(Axis::pipeline);
  std::vector<Transfer> all;
  for (const Instruction& transfer : transfers) {
    InFlight& flight = in_flight(transfer, work);
    all.push_back({is_receive(transfer) ? Transfer::Kind::receive : Transfer::Kind::send,
                   buffer(transfer, flight), peer_stage(transfer, stage, stages)});
  }
  parts_.mesh.axis(Axis::pipeline).exchange(all, parts_.stream);
  for (const Instruction& transfer : transfers) {
    InFlight& flight = in_flight(transfer, work);
    if (transfer.work == Work::send_activation) {
      flight.output.stream.data = {};  // the tape holds what backward needs of it
      flight.sent = !work.training;
      land(transfer, work);
    } else if (transfer.work == Work::send_gradient) {
      flight.input = {};
      flight.sent = true;
      land(transfer, work);
    }
  }
}

}  // namespace bloomery
