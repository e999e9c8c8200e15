// Where the fp32 weights of a range of the flat buffers lie: as they are, or as halves, of which
// one is the range's values (ops/optimizer/split_master.h).
#pragma once

#include "ops/optimizer/split_master.h"

namespace bloomery {

struct MasterWeights {
  bool split = false;
  Tensor whole;       // fp32 (fp64 for oracles; of frozen parameters what the values are)
  Tensor value, low;  // of split ones instead

  std::int64_t numel() const { return (split ? value : whole).numel(); }
  DType dtype() const { return split ? DType::fp32 : whole.dtype(); }
  MasterWeights range(std::int64_t first, std::int64_t count) const;

  // The weights themselves, or a copy of them in the stream's memory.
  Tensor numbers(Stream& stream) const;
  // Memory for other weights, to be filled and given to set(): their own, if they are not halves.
  Tensor room(Stream& stream) const;
  void set(Stream& stream, const Tensor& numbers) const;
  // To memory of the host, a part at a time, so that copies of them take little memory.
  void copy_to(Stream& stream, void* host) const;
};

}  // namespace bloomery
