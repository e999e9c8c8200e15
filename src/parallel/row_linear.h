// A linear layer whose input features are cut over the tensor ranks. The input is this rank's
// features, the output is the same on all ranks.
#pragma once

#include <memory>
#include <string>

#include "autograd/context.h"
#include "comm/mesh.h"
#include "ops/linear/linear.h"

namespace bloomery {

class RowLinear {
 public:
  // The whole weight is [out, in], of which `in` is cut. Every rank holds the whole bias [out]; the
  // first adds it to its part of the sum, all compute the same gradient.
  RowLinear(const Mesh& mesh, const std::string& name, std::int64_t out, std::int64_t in, bool bias,
            const Init& weight_init);

  Value operator()(Context& context, const Value& x) const;  // [tokens, in here] to [tokens, out]
  void collect(ParameterList& parameters) const;

 private:
  std::unique_ptr<Parameter> weight_, bias_;
};

}  // namespace bloomery
