// Everything a forward pass depends on. Whatever else a layer needs is a constructor argument.
#pragma once

#include <functional>
#include <source_location>

#include "autograd/batch.h"
#include "autograd/tape.h"
#include "base/random.h"
#include "tensor/cross_stream_refs.h"

namespace bloomery {

class Mesh;
class Cache;    // keys and values of earlier positions, for generation
class Metrics;  // named losses that layers report
struct Features;
extern const Features kNoFeatures;

struct Context {
  Stream& stream;  // of the computation
  Mesh& mesh;
  const Batch& batch;
  const Features& features = kNoFeatures;  // what the run has switched on (features.h)
  Tape* tape = nullptr;                    // null: no gradients
  std::uint64_t seed = 1234;
  bool training = false;     // dropout is active
  bool recomputing = false;  // second forward of a recomputed segment
  Metrics* metrics = nullptr;
  Cache* cache = nullptr;
  ParameterAccess* access = nullptr;  // null: all values are there, always
  // Where communication runs beside the computation; null: there is no such stream. What it reads
  // or writes is to be given to `kept`.
  Stream* communication = nullptr;
  CrossStreamRefs* kept = nullptr;

  Context with_batch(const Batch& other) const {
    return {stream,      mesh,    other, features, tape,          seed, training,
            recomputing, metrics, cache, access,   communication, kept};
  }

  // Keeps memory that the communication stream uses.
  void keep_until(Tensor tensor, std::shared_ptr<Event> done) const {
    kept->keep_until(std::move(tensor), std::move(done));
  }

  // A fresh output of an op, `who`; has a gradient slot when there is a tape.
  Value output(DType dtype, const Shape& shape,
               const std::source_location& who = std::source_location::current()) const {
    return wrap(Tensor::empty(stream, dtype, shape, who));
  }
  Value wrap(Tensor data) const {
    note_output(stream, data.shape());
    return tape != nullptr ? tape->value(std::move(data)) : Value{std::move(data), nullptr};
  }
};

using Segment = std::function<State(Context&, State)>;

// Runs the segment without keeping its activations; backward runs it again first. One tape entry.
// `state` must be settled (nothing pending).
State recompute(Context& context, const State& state, const Segment& segment);

}  // namespace bloomery
