// Sums of gradients over the ranks that hold parts of them, bucket by bucket, by all-reduce or (of
// shards) reduce-scatter, on the communication stream while the backward pass goes on. Where only
// one rank holds a bucket nothing is launched.
//
// Where a bucket is rounded for its sum (16-bit), the sum over tied stages and then that over
// replicas is rounded too.
#pragma once

#include <functional>
#include <memory>

#include "tensor/cross_stream_refs.h"
#include "zero/parameter_store.h"

namespace bloomery {

class Reducer {
 public:
  // `communication`: null: on the stream of the computation. `kept`: of the reducer alone. All must
  // outlive the reducer, and the communication stream must end before `kept`.
  Reducer(ParameterStore& store, Mesh& mesh, const Ties& ties, Stream& compute,
          Stream* communication, CrossStreamRefs& kept, DType reduce_dtype = DType::fp32)
      : store_(store),
        mesh_(mesh),
        ties_(ties),
        compute_(compute),
        communication_(communication),
        kept_(kept),
        reduce_dtype_(reduce_dtype) {}

  // Called when the sum of a bucket that is its last in a step was given to a stream; null: nobody
  // asks.
  std::function<void(std::size_t bucket, Stream& stream)> on_final;

  // A contribution came (ParameterStore::contributed): starts the sum of the bucket it completes.
  void contributed(Parameter& parameter, std::int64_t micro_batch);
  // Starts what is left of the step; what the computation does next comes after all sums.
  void finish_step();

 private:
  void start(std::size_t bucket);
  void start_sum(std::size_t bucket);
  void sum(std::size_t bucket, const Tensor& grads, const Tensor& sent, Stream& stream);

  ParameterStore& store_;
  Mesh& mesh_;
  const Ties& ties_;
  Stream& compute_;
  Stream* communication_;
  CrossStreamRefs& kept_;
  DType reduce_dtype_;
  std::shared_ptr<Event> last_;  // of the sums that were started
};

}  // namespace bloomery
