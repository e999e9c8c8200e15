// Where kernels that write sums in the accumulation dtype put the gradient of a parameter: into its
// own memory if that has the dtype, else into other memory, whose numbers finish() brings there.
#pragma once

#include "ops/arithmetic/arithmetic.h"

namespace bloomery {

class SumSink {
 public:
  // `sink` may be null, and is then all that this is.
  SumSink(Stream& stream, const Sink& sink, DType sums) : stream_(stream), sink_(sink), own_(sink) {
    if (sink && sink.target.dtype() != sums) {
      own_ = {Tensor::empty(stream, sums, sink.target.shape()), false};
    }
  }
  const Tensor& target() const { return own_.target; }
  bool add() const { return own_.add; }
  void finish() const {
    if (sink_ && own_.target.data() != sink_.target.data()) {
      write_grad(stream_, own_.target, sink_);
    }
  }

 private:
  Stream& stream_;
  Sink sink_, own_;
};

}  // namespace bloomery
