// A linear layer whose output features are cut over the tensor ranks. The input is the same on all
// ranks, the output is this rank's features.
#pragma once

#include <memory>
#include <string>

#include "autograd/context.h"
#include "comm/mesh.h"
#include "ops/linear/linear.h"

namespace bloomery {

class ColumnLinear {
 public:
  // The whole weight is [out_shape.., in], of which dimension `split_dim` is cut; so is the bias
  // [out_shape..]. Parameters "<name>.weight" and, if wanted, "<name>.bias", which starts at zero.
  ColumnLinear(const Mesh& mesh, const std::string& name, const Shape& out_shape, int split_dim,
               std::int64_t in, bool bias, const Init& weight_init);

  // x [tokens, in] to [tokens, features held here].
  Value operator()(Context& context, const Value& x,
                   Activation activation = Activation::none) const;
  void collect(ParameterList& parameters) const;

 private:
  std::unique_ptr<Parameter> weight_, bias_;
};

}  // namespace bloomery
