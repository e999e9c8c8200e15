#include "parallel/column_linear.h"

#include "parallel/conjugates.h"

namespace bloomery {

ColumnLinear::ColumnLinear(const Mesh& mesh, const std::string& name, const Shape& out_shape,
                           int split_dim, std::int64_t in, bool bias, const Init& weight_init) {
  const int rank = mesh.coordinate(Axis::tensor), num_ranks = mesh.degree(Axis::tensor);
  check(split_dim >= 0 && split_dim < out_shape.rank() && out_shape[split_dim] % num_ranks == 0,
        name, ": dimension ", split_dim, " of the output ", out_shape, " cannot be divided among ",
        num_ranks, " tensor-parallel ranks: choose --tensor-model-parallel-size that divides it");
  Shape weight_shape = out_shape;
  weight_shape.append(in);
  weight_ = std::make_unique<Parameter>(
      make_parameter(name + ".weight", Box::whole(weight_shape).split(split_dim, rank, num_ranks),
                     weight_init, true));
  if (bias) {
    bias_ = std::make_unique<Parameter>(make_parameter(
        name + ".bias", Box::whole(out_shape).split(split_dim, rank, num_ranks), {}, false));
  }
}

Value ColumnLinear::operator()(Context& context, const Value& x, Activation activation) const {
  return linear(context, copy_to_tensor(context, x), *weight_, bias_.get(),
                {.activation = activation});
}

void ColumnLinear::collect(ParameterList& parameters) const {
  parameters.push_back(weight_.get());
  if (bias_) {
    parameters.push_back(bias_.get());
  }
}

}  // namespace bloomery
