#include "parallel/row_linear.h"

#include "parallel/conjugates.h"

namespace bloomery {

RowLinear::RowLinear(const Mesh& mesh, const std::string& name, std::int64_t out, std::int64_t in,
                     bool bias, const Init& weight_init) {
  const int rank = mesh.coordinate(Axis::tensor), num_ranks = mesh.degree(Axis::tensor);
  check(in % num_ranks == 0, name, ": ", in, " input features cannot be divided among ", num_ranks,
        " tensor-parallel ranks: choose --tensor-model-parallel-size that divides them");
  weight_ = std::make_unique<Parameter>(make_parameter(
      name + ".weight", Box::whole({out, in}).split(1, rank, num_ranks), weight_init, true));
  if (bias) {
    bias_ =
        std::make_unique<Parameter>(make_parameter(name + ".bias", Box::whole({out}), {}, false));
  }
}

Value RowLinear::operator()(Context& context, const Value& x) const {
  const bool first = context.mesh.coordinate(Axis::tensor) == 0;
  return reduce_from_tensor(context,
                            linear(context, x, *weight_, bias_.get(), {.add_bias = first}));
}

void RowLinear::collect(ParameterList& parameters) const {
  parameters.push_back(weight_.get());
  if (bias_) {
    parameters.push_back(bias_.get());
  }
}

}  // namespace bloomery
