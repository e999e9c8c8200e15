// What an optimizer updates: a range of the flat buffers (zero/parameter_store.h makes them),
// one-dimensional, starting at a unit.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

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
  Tensor master;  // fp32 (fp64 for oracles)
  Tensor grad;  // dtype of master, or bf16; sum over micro-batches and ranks, times the loss scale
  Tensor moment1;     // dtype of master; null: the optimizer makes it, zero
  Tensor moment2;     // Adam only; likewise
  Tensor unit_flags;  // uint8 [num_units(elements)], see ops/optimizer/units.h

  // Not null: master weights and moments lie in this stream's memory, on the host, and are updated
  // there (host_update.h).
  Stream* host = nullptr;
  Tensor host_flags;                 // as unit_flags, there
  std::vector<HostPart> host_parts;  // the shard in pieces, in order
  bool value_on_host = false;        // `value` lies there too
  StateFiles* files = nullptr;       // not null: master weights and moments lie in them instead
};

}  // namespace bloomery
