#include "autograd/inputs_on_host.h"

#include <utility>

#include "autograd/context.h"
#include "autograd/features.h"
#include "comm/mesh.h"
#include "device/op_clock.h"
#include "device/recorded.h"

namespace bloomery {

InputsOnHost::InputsOnHost(Stream& compute, Stream& host, Stream& copies)
    : compute_(compute), host_(host), copies_(copies), leaving_(compute) {}

std::shared_ptr<InputsOnHost::Held> InputsOnHost::hold(const void* tape, const Tensor& input) {
  const std::shared_ptr<Held> before = tape == tape_ ? last_.lock() : nullptr;
  auto held = std::make_shared<Held>(*this, input, before);
  tape_ = tape;
  last_ = held;
  return held;
}

InputsOnHost::Held::Held(InputsOnHost& owner, const Tensor& input, std::shared_ptr<Held> before)
    : owner_(owner),
      host_(Tensor::empty(owner.host_, input.dtype(), input.shape())),
      before_(before) {
  const OpScope scope(owner.compute_, "input_to_host");
  owner.copies_.wait(*recorded(owner.compute_));
  owner.copies_.copy(host_.data(), input.data(), input.bytes());
  owner.leaving_.keep_until(input, recorded(owner.copies_));
}

// The copy comes after whatever used the memory before: the computation has been given it.
void InputsOnHost::Held::fetch() {
  if (back_) {
    return;
  }
  back_ = Tensor::empty(owner_.compute_, host_.dtype(), host_.shape());
  owner_.copies_.wait(*recorded(owner_.compute_));
  owner_.copies_.copy(back_.data(), host_.data(), back_.bytes());
  arrived_ = recorded(owner_.copies_);
}

Tensor InputsOnHost::Held::take() {
  const OpScope scope(owner_.compute_, "input_from_host");
  owner_.leaving_.wait();
  fetch();
  if (const std::shared_ptr<Held> next = before_.lock()) {
    next->fetch();
  }
  owner_.compute_.wait(*std::exchange(arrived_, {}));
  return std::exchange(back_, {});
}

namespace {

// This rank's part of what all tensor-parallel ranks have.
Tensor own_part(const Context& context, const Tensor& input) {
  Mesh& mesh = context.mesh;
  const std::int64_t count = input.shape().numel() / mesh.degree(Axis::tensor);
  const Tensor from = input.range(mesh.coordinate(Axis::tensor) * count, {count});
  const OpScope scope(context.stream, "part_of_input");
  Tensor part = Tensor::empty(context.stream, input.dtype(), {count});
  context.stream.copy(part.data(), from.data(), part.bytes());
  return part;
}

}  // namespace

KeptInput::KeptInput(const Context& context, Tensor input) : stream_(&context.stream) {
  Mesh& mesh = context.mesh;
  const int ranks = mesh.degree(Axis::tensor);
  if (context.features.activations.divide_inputs && ranks > 1 && !mesh.divides_tokens() &&
      input.shape().numel() % ranks == 0) {
    mesh_ = &mesh;
    shape_ = input.shape();
    input = own_part(context, input);
  }
  if (InputsOnHost* const host = context.features.inputs_on_host) {
    held_ = host->hold(context.tape, input);
  } else {
    input_ = std::move(input);
  }
}

Tensor KeptInput::take() const {
  const Tensor part = held_ ? held_->take() : input_;
  if (mesh_ == nullptr) {
    return part;
  }
  Tensor whole = Tensor::empty(*stream_, part.dtype(), shape_);
  mesh_->axis(Axis::tensor).all_gather(part, whole, *stream_);
  return whole;
}

}  // namespace bloomery
