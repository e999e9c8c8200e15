// The coarse tape. Ops record themselves with a hand-written backward; models are written forward
// only. One tape per (chunk, micro-batch); it is an argument, never global.
//
// Rules:
//   * The first writer of a gradient overwrites, later ones add; the kernel gets that as an
//     argument (Sink::add), so nothing is ever cleared. The same holds for parameters, where the
//     store clears Parameter::grad_written for the micro-batches that must overwrite.
//   * An entry holds Parameter&, never its (possibly gathered) tensor.
//   * on_contribution fires for each contribution to a parameter's gradient, in an order fixed by
//     the recorded program. How many make it complete is for others to count.
//   * Of an entry whose parameters are all frozen only the input gradient is computed.
//   * Backward of an entry has two parts: the gradient of its inputs, run at once, and of its
//     weights, which a schedule may defer into a queue.
//   * Nothing here synchronises with the device.
#pragma once

#include <deque>
#include <functional>
#include <source_location>
#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "autograd/value.h"

namespace bloomery {

class Tape;

// Where to write a gradient, and whether to overwrite or add.
struct Sink {
  Tensor target;
  bool add = false;

  explicit operator bool() const { return static_cast<bool>(target); }
};

using BackwardFn = std::function<void(Tape&)>;

struct Entry {
  const char* op = "";         // a string literal
  BackwardFn input_gradient;   // may be empty
  BackwardFn weight_gradient;  // may be empty; deferrable
  ParameterList parameters;    // whose gradients the entry contributes to, once each
  std::vector<Tensor> saved;   // what it keeps alive, for describe()
  Shape shape;                 // of its output, for describe()
};

// Weight gradients put off by a zero-bubble schedule, in recorded order.
class WeightQueue {
 public:
  void push(std::function<void()> work) { pending_.push_back(std::move(work)); }
  bool run_one();  // false when there is none
  void run_all() {
    while (run_one()) {
    }
  }
  std::size_t size() const { return pending_.size(); }

 private:
  std::deque<std::function<void()>> pending_;
};

// Tells the profile, if one is made, the shape of the output of the op that runs.
void note_output(const Stream& stream, const Shape& shape);

class Tape {
 public:
  explicit Tape(Stream& stream) : stream_(&stream) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  void record(Entry entry);

  // A value made on this tape.
  Value value(Tensor data) const;

  // Where the gradient of a value or parameter goes; null when nobody wants it. `who` is named when
  // memory for it runs out: the op that asked.
  Sink sink(const Slot& slot, const std::source_location& who = std::source_location::current());
  Sink sink(Parameter& parameter);  // of a frozen one: memory that nobody reads
  // For a gradient that is already multiplied by the derivative which the slot offers.
  Sink epilogue_sink(const Slot& slot,
                     const std::source_location& who = std::source_location::current());

  // The gradient that consumers wrote; a null tensor when none did.
  const Tensor& grad(const Slot& slot) const { return slot->grad; }
  // Seeds the gradient of an output, for instance one received from the next pipeline stage. The
  // buffer is given away: backward may write to it.
  void set_grad(const Slot& slot, Tensor grad) {
    slot->grad = std::move(grad);
    slot->column_sums = {};
  }
  // Lets `input` take over the gradient buffer of `output`, in its own shape; true if it could (it
  // had none yet and weight gradients are not deferred, which would still read the buffer).
  bool adopt(const Slot& input, const Slot& output);
  // Lets `branch` read the gradient buffer of `sum`, of which it is an addend; true if it could (as
  // for adopt). Whoever writes to either later does so in a copy, unless the other is gone.
  bool share(const Slot& branch, const Slot& sum);
  // Whether the gradient of a value may be changed in place: no other slot reads its buffer.
  bool exclusive(const Slot& slot) const { return slot->sharers.use_count() <= 1; }

  // Pops all entries, newest first, and frees what they saved.
  void backward();

  // Runs backward of a tape that an entry of this one made for itself (recompute). What the inner
  // tape defers belongs to the outermost tape, which must outlive the queue.
  void run_nested(Tape& inner);
  // The same of one of several such tapes, over which an entry divides its work. Weight gradients
  // are not put off, which would keep what all of them saved, and contributions are announced by
  // the last alone: together they are one.
  void run_part(Tape& inner, bool last);

  // Of the outermost tape: before a parameter's gradient is written, and after each contribution.
  std::function<void(Parameter&)> on_sink, on_contribution;
  WeightQueue* deferred = nullptr;

  // Op, output shape and bytes kept per entry. Storage shared by several entries counts once.
  std::string describe() const;
  std::size_t saved_bytes() const;
  std::size_t num_entries() const { return entries_.size(); }
  Stream& stream() const { return *stream_; }

 private:
  Sink sink_to(const GradSlot& slot, Tensor& grad, const std::source_location& who) const;

  Stream* stream_;
  Tape* root_ = this;  // the outermost tape
  bool announces_ = true;
  std::vector<Entry> entries_;
};

}  // namespace bloomery
