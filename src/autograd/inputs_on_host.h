// Inputs of recomputed segments that wait for their backward pass in the memory of the host. They
// leave beside the computation of the forward pass, and come back one segment ahead of the backward
// pass that wants them.
#pragma once

#include <memory>

#include "device/host_side.h"
#include "tensor/cross_stream_refs.h"

namespace bloomery {

struct Context;
class Mesh;

class InputsOnHost {
 public:
  // `host`'s memory takes the inputs of segments on `compute`, copied on `copies`. All must outlive
  // the last of them, and `copies` must end before this does.
  InputsOnHost(Stream& compute, Stream& host, Stream& copies);

  class Held {
   public:
    Held(InputsOnHost& owner, const Tensor& input, std::shared_ptr<Held> before);
    Tensor take();  // on the device again, for what the computation does next
    const Tensor& on_host() const { return host_; }

   private:
    void fetch();

    InputsOnHost& owner_;
    Tensor host_, back_;
    std::shared_ptr<Event> arrived_;
    std::weak_ptr<Held> before_;  // the next that backward wants
  };
  // `tape`: whose backward pass takes it, in the reverse order.
  std::shared_ptr<Held> hold(const void* tape, const Tensor& input);

 private:
  Stream &compute_, &host_, &copies_;
  CrossStreamRefs leaving_;
  const void* tape_ = nullptr;  // of the one held last
  std::weak_ptr<Held> last_;
};

// The input of a segment, kept for the backward pass of the context's tape: on the host, and
// divided among tensor-parallel ranks that have all of it, where the features say so.
class KeptInput {
 public:
  KeptInput(const Context& context, Tensor input);
  const Tensor& on_device() const { return input_; }  // null: it waits on the host
  // Collective among the tensor-parallel ranks where it is divided.
  Tensor take() const;

 private:
  Tensor input_;
  std::shared_ptr<InputsOnHost::Held> held_;
  Stream* stream_;
  Mesh* mesh_ = nullptr;  // of the ranks that have the other parts; null: it is whole
  Shape shape_;
};

}  // namespace bloomery
