#include "train/step/executor.h"

#include <array>

#include "comm/watch/recorded.h"
#include "train/profile/instruction_clock.h"
#include "train/run/timers.h"
#include "train/step/stage.h"
#include "train/step/teacher.h"

namespace bloomery {
namespace {

using Work = Instruction::Work;

constexpr std::int64_t kLevelOfPasses = 2;

Timers::Scope timed(Timers* timers, const char* name) {
  return timers != nullptr ? timers->scope(kLevelOfPasses, name) : Timers::Scope(nullptr, name);
}

// What passes between stages, in the order in which it is sent.
constexpr std::array kFields = {&State::stream, &State::encoder};

bool is_receive(const Instruction& i) {
  return i.work == Work::receive_activation || i.work == Work::receive_gradient;
}

}  // namespace

// One micro-batch on its way through one chunk.
struct Executor::InFlight {
  const Batch* batch = nullptr;
  Features features;
  std::optional<Tape> tape;  // none: forward alone
  WeightQueue weights;       // put off by backward_input
  State input, output;       // between stages; the ends of the model have none
  std::array<Tensor, kFields.size()> output_grads;  // as they were received
  bool passes_done = false;                         // all passes of this chunk
  bool sent = false;                                // what they gave to another stage
};

Executor::Executor(Stage& stage) : stage_(stage), recorder_(recorder_of(stage.mesh().world())) {}
Executor::~Executor() = default;

const Model& Executor::chunk(const Instruction& instruction) const {
  return *stage_.chunks()[static_cast<std::size_t>(instruction.chunk)];
}

Context Executor::context(InFlight& flight, const ExecutorWork& work) const {
  return stage_.context(*flight.batch, flight.features, flight.tape ? &*flight.tape : nullptr,
                        work.training);
}

Batch Executor::loaded(std::int64_t micro_batch, const ExecutorWork& work) const {
  Batch batch = work.batch(micro_batch);
  check(static_cast<bool>(batch.whole) == stage_.sequence_share().divides(),
        "a micro-batch has another part of its sequences than this rank's: Stage::sequence_share");
  batch.grad_scale = work.grad_scale;
  return batch;
}

void Executor::run(std::span<const Instruction> list, const ExecutorWork& work) {
  in_flight_.clear();  // of a run that an exception ended
  loaded_.clear();
  for (const std::span<const Instruction> step : steps(list)) {
    run_step(step, work);
  }
}

bool Executor::observed() const {
  return clock_ != nullptr || tape_report.has_value() || stage_.stream().clock() != nullptr ||
         (timers_ != nullptr && timers_->level() >= kLevelOfPasses);
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
      loaded = {std::make_unique<Batch>(this->loaded(instruction.micro_batch, work)),
                stage_.chunks().size()};
    }
    flight = std::make_unique<InFlight>();
    flight->batch = loaded.batch.get();
    flight->features = stage_.features().features();
    if (work.training) {
      Tape& tape = flight->tape.emplace(stage_.stream());
      tape.on_sink = [this](Parameter& parameter) { stage_.store().prepare_grad(parameter); };
      tape.on_contribution = [this, m = instruction.micro_batch,
                              noted = work.contributions](Parameter& parameter) {
        if (noted != nullptr) {
          noted->push_back(&parameter);
        }
        stage_.reducer().contributed(parameter, m);
      };
    }
  }
  return *flight;
}

// Forgets a micro-batch that nothing is left to be done with.
void Executor::retire(const Instruction& instruction, const ExecutorWork& work) {
  const auto found = in_flight_.find({instruction.chunk, instruction.micro_batch});
  const Model& model = chunk(instruction);
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
      forward(flight, chunk(instruction), work);
    } else {
      backward(flight, instruction.work);
    }
  }
  retire(instruction, work);
}

void Executor::forward(InFlight& flight, const Model& model, const ExecutorWork& work) {
  Context context = this->context(flight, work);
  Metrics metrics;
  context.metrics = &metrics;
  const bool is_taught = model.is_last() && work.teacher != nullptr;
  if (is_taught) {
    flight.features.distillation = &work.teacher->teach(context);
  }
  State output = model.forward(context, flight.input, stage_.options().recompute);
  if (is_taught) {
    flight.features.distillation = nullptr;
    work.teacher->dismiss();
  }
  if (!work.training) {
    flight.input = {};
  }
  if (model.is_last() || !metrics.entries().empty()) {
    work.reader.read(*flight.batch, metrics);
  }
  if (!model.is_last()) {
    flight.output = add_pending(context, std::move(output));
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
    for (std::size_t i = 0; i < kFields.size(); ++i) {
      if (flight.output_grads[i]) {  // what later blocks find there they add to
        tape.set_grad((flight.output.*kFields[i]).slot, std::exchange(flight.output_grads[i], {}));
      }
    }
    tape.deferred = part == Work::backward_input ? &flight.weights : nullptr;
    tape.backward();
    flight.output = {};
  }
  flight.passes_done = part != Work::backward_input;
}

// What this chunk gets from the stage before it: memory for it.
State Executor::empty_input(const Model& model, InFlight& flight, const ExecutorWork& work) const {
  const Context context = this->context(flight, work);
  const StateShape shape = model.input_shape(*flight.batch);
  const auto empty = [&](const ValueShape& of) {
    return of.shape.rank() == 0 ? Value() : context.output(of.dtype, of.shape);
  };
  return {.stream = empty(shape.stream), .encoder = empty(shape.encoder)};
}

// The memory that a transfer fills or reads, of each field that travels.
std::vector<View> Executor::buffers(const Instruction& transfer, InFlight& flight,
                                    const ExecutorWork& work) {
  const bool receives_input = transfer.work == Work::receive_activation;
  if (receives_input) {
    flight.input = empty_input(chunk(transfer), flight, work);
  }
  const bool of_input = receives_input || transfer.work == Work::send_gradient;
  std::vector<View> all;
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    const Value& value = (of_input ? flight.input : flight.output).*kFields[i];
    if (receives_input || transfer.work == Work::send_activation) {
      if (value) {
        all.emplace_back(value.data);
      }
    } else if (value.slot != nullptr) {
      Tensor& grad = of_input ? value.slot->grad : flight.output_grads[i];
      if (!of_input) {
        grad = Tensor::empty(stage_.stream(), value.slot->dtype, value.slot->shape);
      }
      check(static_cast<bool>(grad), "a pipeline stage made no gradient of its input");
      all.emplace_back(grad);
    }
  }
  return all;
}

void Executor::exchange(std::span<const Instruction> transfers, const ExecutorWork& work) {
  const int stage = stage_.mesh().coordinate(Axis::pipeline);
  const int stages = stage_.mesh().degree(Axis::pipeline);
  std::vector<Transfer> all;
  for (const Instruction& transfer : transfers) {
    InFlight& flight = in_flight(transfer, work);
    for (const View& buffer : buffers(transfer, flight, work)) {
      all.push_back({is_receive(transfer) ? Transfer::Kind::receive : Transfer::Kind::send, buffer,
                     peer_stage(transfer, stage, stages)});
    }
  }
  stage_.mesh().axis(Axis::pipeline).exchange(all, stage_.stream());
  for (const Instruction& transfer : transfers) {
    InFlight& flight = in_flight(transfer, work);
    if (transfer.work == Work::send_activation) {
      for (auto field : kFields) {
        (flight.output.*field).data = {};  // the tape holds what backward needs of it
      }
      flight.sent = !work.training;
      retire(transfer, work);
    } else if (transfer.work == Work::send_gradient) {
      flight.input = {};
      flight.sent = true;
      retire(transfer, work);
    }
  }
}

}  // namespace bloomery
