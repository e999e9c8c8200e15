// A low-rank product beside a linear layer (LoRA): y += scale (dropout(x) A^T) B^T. It is sharded
// over the tensor ranks as the layer's weight is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/mesh.h"
#include "ops/linear/linear.h"
#include "ops/low_rank/row_parts.h"

namespace bloomery {

struct LowRankOptions {
  std::int64_t rank = 8;
  float scale = 1;
  float dropout = 0;  // of its input
  // A fused weight has a product for each part of it: runs of indices of dimension `dim` of the
  // output, as many as `sizes` says. `places`: which product is a part's, -1: none. Without sizes
  // there is one for all.
  int dim = 0;
  std::vector<std::int64_t> sizes;
  std::vector<int> places;

  int num_places() const;
  // Of rows that are indices of `out_shape`, as far as they are held here.
  RowParts rows(const Shape& out_shape) const;
};

class LowRank {
 public:
  // Parameters "<name>.lora_a" [products, rank, in], uniform up to 1/sqrt(in), and "<name>.lora_b"
  // [out.., rank], which starts at zero. `weight` is the part of [out.., in] that is held here.
  // Cut along an output, each rank has a part of the first one's gradient; cut along the input,
  // of the second one's.
  LowRank(const std::string& name, const Box& weight, const LowRankOptions& options);

  // Adds to the output of the layer, which is of x and has no activation yet.
  void add(Context& context, const LinearInput& x, const Value& y) const;
  void collect(ParameterList& parameters) const;

 private:
  LowRankOptions options_;
  RowParts rows_;
  std::int64_t first_channel_;  // of those of x that are held here
  std::string dropout_purpose_;
  std::unique_ptr<Parameter> a_, b_;
};

}  // namespace bloomery
