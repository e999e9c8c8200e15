// Ops so small that they can be seen whole, and what a tape needs around it.
#pragma once

#include <cmath>

#include "autograd/context.h"
#include "comm/mesh.h"

namespace bloomery::testing {

inline constexpr std::int64_t kCount = 256;

inline float* floats(const Tensor& tensor) { return static_cast<float*>(tensor.data()); }

template <class F>
void write(const Sink& sink, F f) {
  for (std::int64_t i = 0; sink && i < sink.target.numel(); ++i) {
    floats(sink.target)[i] = f(i) + (sink.add ? floats(sink.target)[i] : 0.0f);
  }
}

// y = w x elementwise. dx = w dy, dw = x dy; the latter may be deferred.
inline Value times(Context& context, const Value& x, Parameter& w) {
  Value y = context.output(DType::fp32, x.shape());
  write({y.data, false}, [&](auto i) { return floats(w.value)[i] * floats(x.data)[i]; });
  if (context.tape != nullptr) {
    context.tape->record({.op = "times",
                          .input_gradient =
                              [x = x.slot, y = y.slot, &w](Tape& tape) {
                                const float* dy = floats(tape.grad(y));
                                write(tape.sink(x),
                                      [&](auto i) { return floats(w.value)[i] * dy[i]; });
                              },
                          .weight_gradient =
                              [x = x.data, y = y.slot, &w](Tape& tape) {
                                const float* dy = floats(tape.grad(y));
                                write(tape.sink(w), [&](auto i) { return floats(x)[i] * dy[i]; });
                              },
                          .parameters = {&w},
                          .saved = {x.data},
                          .shape = y.shape()});
  }
  return y;
}

// y = tanh x. dx = (1 - y^2) dy.
inline Value tanh(Context& context, const Value& x) {
  Value y = context.output(DType::fp32, x.shape());
  write({y.data, false}, [&](auto i) { return std::tanh(floats(x.data)[i]); });
  if (context.tape != nullptr) {
    context.tape->record({.op = "tanh",
                          .input_gradient =
                              [x = x.slot, y = y](Tape& tape) {
                                const float* dy = floats(tape.grad(y.slot));
                                write(tape.sink(x), [&](auto i) {
                                  return (1 - floats(y.data)[i] * floats(y.data)[i]) * dy[i];
                                });
                              },
                          .saved = {y.data},
                          .shape = y.shape()});
  }
  return y;
}

// y = a + b. a takes over dy, b gets a copy.
inline Value sum(Context& context, const Value& a, const Value& b) {
  Value y = context.output(DType::fp32, a.shape());
  write({y.data, false}, [&](auto i) { return floats(a.data)[i] + floats(b.data)[i]; });
  if (context.tape != nullptr) {
    context.tape->record({.op = "sum",
                          .input_gradient =
                              [a = a.slot, b = b.slot, y = y.slot](Tape& tape) {
                                const Tensor dy = tape.grad(y);
                                write(tape.sink(b), [&](auto i) { return floats(dy)[i]; });
                                if (!tape.adopt(a, y)) {
                                  write(tape.sink(a), [&](auto i) { return floats(dy)[i]; });
                                }
                              },
                          .shape = y.shape()});
  }
  return y;
}

struct TapeCase {
  Tensor filled(float value) {
    return Tensor::from_host(stream, std::vector<float>(kCount, value), {kCount});
  }
  Tensor drawn(const std::string& name) {
    std::vector<float> values(kCount);
    for (std::int64_t i = 0; i < kCount; ++i) {
      values[i] = static_cast<float>(random_normal(random_key(3, name), i));
    }
    return Tensor::from_host(stream, values, {kCount});
  }
  Parameter parameter(const std::string& name, int uses = 1) {
    Parameter p = make_parameter(name, Box::whole({kCount}), {}, true);
    p.value = drawn(name);
    p.grad = Tensor::empty(stream, DType::fp32, {kCount});  // poisoned
    p.uses = uses;
    return p;
  }
  Context context(Tape* tape) {
    return {.stream = stream, .mesh = mesh, .batch = batch, .tape = tape};
  }
  std::vector<float> host(const Tensor& tensor) { return tensor.to_host<float>(stream); }
  std::size_t used() { return stream.memory()->statistics().used_bytes; }

  Device device{DeviceOptions{.num_threads = 1, .poison = true}};
  Stream stream{device};
  Mesh mesh = Mesh::single();
  Batch batch;
};

}  // namespace bloomery::testing
