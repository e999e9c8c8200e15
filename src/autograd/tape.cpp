#include "autograd/tape.h"

#include <iomanip>
#include <optional>
#include <set>

#include "device/op_clock.h"

namespace bloomery {

void note_output(const Stream& stream, const Shape& shape) {
  if (OpClock* const clock = stream.clock(); clock != nullptr && clock->wants_detail()) {
    clock->note(concat(shape));
  }
}

bool WeightQueue::run_one() {
  if (pending_.empty()) {
    return false;
  }
  const std::function<void()> work = std::move(pending_.front());
  pending_.pop_front();
  work();
  return true;
}

void Tape::record(Entry entry) {
  if (!entry.parameters.empty()) {
    std::erase_if(entry.parameters, [](const Parameter* p) { return p->frozen; });
    if (entry.parameters.empty()) {
      entry.weight_gradient = nullptr;  // and with it what it kept
    }
  }
  entries_.push_back(std::move(entry));
}

Value Tape::value(Tensor data) const {
  auto slot = std::make_shared<GradSlot>();
  slot->dtype = data.dtype();
  slot->shape = data.shape();
  return {std::move(data), std::move(slot)};
}

Sink Tape::sink(const Slot& slot, const std::source_location& who) {
  if (slot == nullptr) {
    return {};
  }
  slot->column_sums = {};
  if (slot->grad && !exclusive(slot)) {
    const Tensor shared = std::move(slot->grad);
    slot->grad = Tensor::empty(*stream_, slot->dtype, slot->shape, who);
    stream_->copy(slot->grad.data(), shared.data(), shared.bytes());
    slot->sharers.reset();
  }
  return sink_to(*slot, slot->grad, who);
}

Sink Tape::epilogue_sink(const Slot& slot, const std::source_location& who) {
  if (slot == nullptr) {
    return {};
  }
  slot->column_sums = {};
  return sink_to(*slot, slot->epilogue_grad, who);
}

Sink Tape::sink_to(const GradSlot& slot, Tensor& grad, const std::source_location& who) const {
  const bool add = static_cast<bool>(grad);
  if (!add) {
    grad = Tensor::empty(*stream_, slot.dtype, slot.shape, who);
  }
  return {grad, add};
}

Sink Tape::sink(Parameter& parameter) {
  if (parameter.frozen) {
    const DType dtype = accumulation_dtype(parameter.value.dtype());
    return {Tensor::empty(*stream_, dtype, parameter.local_shape)};
  }
  if (root_->on_sink) {
    root_->on_sink(parameter);
  }
  check(static_cast<bool>(parameter.grad), "parameter ", parameter.name,
        " has no gradient buffer: lay out the parameters before training");
  const bool add = parameter.grad_written;
  parameter.grad_written = true;
  return {parameter.grad, add};
}

bool Tape::adopt(const Slot& input, const Slot& output) {
  if (input == nullptr || input->grad || deferred != nullptr || input->dtype != output->dtype) {
    return false;
  }
  if (output->grad) {
    input->grad = output->grad.reshape(input->shape);
  }
  input->sharers = std::move(output->sharers);
  return true;
}

bool Tape::share(const Slot& branch, const Slot& sum) {
  if (branch == nullptr || branch->grad || deferred != nullptr || branch->dtype != sum->dtype) {
    return false;
  }
  if (sum->sharers == nullptr) {
    sum->sharers = std::make_shared<char>();
  }
  branch->grad = sum->grad;
  branch->sharers = sum->sharers;
  return true;
}

void Tape::backward() {
  std::optional<OpScope> phase;  // of the outermost tape: recomputed segments are parts of it
  if (root_ == this) {
    phase.emplace(*stream_, OpKind::backward);
  }
  while (!entries_.empty()) {
    Entry entry = std::move(entries_.back());
    entries_.pop_back();
    const OpScope scope(*stream_, entry.op, OpKind::backward);
    note_output(*stream_, entry.shape);
    if (entry.input_gradient) {
      entry.input_gradient(*this);
      entry.input_gradient = nullptr;
    }
    if (!announces_) {
      entry.parameters.clear();
    }
    auto finish = [root = root_, weight = std::move(entry.weight_gradient),
                   parameters = std::move(entry.parameters)] {
      if (weight) {
        weight(*root);
      }
      for (Parameter* parameter : parameters) {
        if (root->on_contribution) {
          root->on_contribution(*parameter);
        }
      }
    };
    if (deferred != nullptr) {
      deferred->push([op = entry.op, root = root_, finish = std::move(finish)] {
        const OpScope later(root->stream(), op, OpKind::backward);
        finish();
      });
    } else {
      finish();
    }
  }
}

void Tape::run_nested(Tape& inner) {
  inner.root_ = root_;
  inner.deferred = deferred;
  inner.announces_ = announces_;
  inner.backward();
}

void Tape::run_part(Tape& inner, bool last) {
  inner.root_ = root_;
  inner.announces_ = announces_ && last;
  inner.backward();
}

std::size_t Tape::saved_bytes() const {
  std::set<const Storage*> seen;
  std::size_t bytes = 0;
  for (const Entry& entry : entries_) {
    for (const Tensor& tensor : entry.saved) {
      if (tensor && seen.insert(tensor.storage().get()).second) {
        bytes += tensor.storage()->bytes();
      }
    }
  }
  return bytes;
}

std::string Tape::describe() const {
  std::ostringstream text;
  text << std::left << std::setw(24) << "op" << std::setw(28) << "output" << std::right
       << std::setw(16) << "saved bytes" << '\n';
  std::set<const Storage*> seen;
  for (const Entry& entry : entries_) {
    std::size_t bytes = 0;
    for (const Tensor& tensor : entry.saved) {
      if (tensor && seen.insert(tensor.storage().get()).second) {
        bytes += tensor.storage()->bytes();
      }
    }
    text << std::left << std::setw(24) << entry.op << std::setw(28) << concat(entry.shape)
         << std::right << std::setw(16) << bytes << '\n';
  }
  text << std::left << std::setw(52) << "total" << std::right << std::setw(16) << saved_bytes()
       << '\n';
  return text.str();
}

}  // namespace bloomery
