// What an optimizer updates: a range of the flat buffers (zero/parameter_store.h makes them),
// one-dimensional, starting at a unit.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "optim/master_weights.h"
#include "optim/placement.h"

namespace bloomery {

class StateFiles;

// What of a shard is fetched, updated and sent back at once.
struct HostPart {
  std::size_t bucket;         // that it is of, in the order of the backward pass
  std::int64_t first, count;  // elements of the shard
};

struct FlatShard {
  // Which of the next three there are.
  WeightForm form = WeightForm::exact;
  // Of WeightForm::master and split: what the model computes with, in bf16 or fp16, written after
  // each step. Beside a device also the device's copy of master weights that lie elsewhere.
  Tensor value;
  Tensor master;  // of WeightForm::exact and master: fp32 (fp64 for oracles)
  Tensor low;     // of WeightForm::split
  // Dtype of the weights, or bf16; sum over micro-batches and ranks, times the loss scale.
  Tensor grad;
  // As the optimizer's rule declares (ops/optimizer/rules.h); empty: it makes them.
  std::vector<Tensor> state;
  Tensor unit_flags;  // uint8 [num_units(elements)], see ops/optimizer/units.h

  // Of master weights and state, which are updated on the host if they are not on the device
  // (host_update.h). The low halves are set then.
  Placement placement = Placement::device;
  Placement value_placement = Placement::device;
  Stream* host = nullptr;
  StateFiles* files = nullptr;       // of Placement::file
  Tensor host_flags;                 // as unit_flags, there
  std::vector<HostPart> host_parts;  // the shard in pieces, in order

  std::int64_t numel() const { return grad.numel(); }
  bool on_device() const { return placement == Placement::device; }
  MasterWeights weights() const {
    return form == WeightForm::split ? MasterWeights{.split = true, .value = value, .low = low}
                                     : MasterWeights{.whole = master};
  }
};

// One of a shard's tensors, for who looks at them one by one.
using ShardTensor = std::function<Tensor(const FlatShard&, Stream&)>;
inline Tensor weights_of(const FlatShard& shard, Stream& stream) {
  return shard.weights().numbers(stream);
}
inline Tensor gradient_of(const FlatShard& shard, Stream&) { return shard.grad; }

}  // namespace bloomery
