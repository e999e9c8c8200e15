// What an optimizer updates: a range of the flat buffers (zero/parameter_store.h makes them),
// one-dimensional, starting at a unit.
#pragma once

#include <cstdint>
#include <vector>

#include "optim/master_weights.h"

namespace bloomery {

class StateFiles;

// What of a shard is fetched, updated and sent back at once.
struct HostPart {
  std::size_t bucket;         // that it is of, in the order of the backward pass
  std::int64_t first, count;  // elements of the shard
};

struct FlatShard {
  // bf16 or fp16, written after each step; null: master is the value. On the host's side, of any
  // dtype: where the device has its values.
  Tensor value;
  Tensor master;  // fp32 (fp64 for oracles); null: value and rest are the halves of the weights
  Tensor rest;    // of values in bf16, instead of master
  // Dtype of the weights, or bf16; sum over micro-batches and ranks, times the loss scale.
  Tensor grad;
  Tensor moment1;     // dtype of the weights; null: the optimizer makes it, zero
  Tensor moment2;     // Adam only; likewise
  Tensor unit_flags;  // uint8 [num_units(elements)], see ops/optimizer/units.h

  // Not null: master weights and moments lie in this stream's memory, on the host, and are updated
  // there (host_update.h).
  Stream* host = nullptr;
  Tensor host_flags;                 // as unit_flags, there
  std::vector<HostPart> host_parts;  // the shard in pieces, in order
  bool value_on_host = false;        // `value` lies there too
  StateFiles* files = nullptr;       // not null: master weights and moments lie in them instead

  std::int64_t numel() const { return grad.numel(); }
  MasterWeights weights() const {
    return rest ? MasterWeights{.value = value, .rest = rest} : MasterWeights{.whole = master};
  }
};

// One of a shard's tensors, for who looks at them one by one.
using ShardTensor = Tensor (*)(const FlatShard&, Stream&);
inline Tensor weights_of(const FlatShard& shard, Stream& stream) {
  return shard.weights().numbers(stream);
}
inline Tensor gradient_of(const FlatShard& shard, Stream&) { return shard.grad; }

}  // namespace bloomery
