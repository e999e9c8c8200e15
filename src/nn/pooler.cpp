#include "nn/pooler.h"

#include "comm/mesh.h"
#include "ops/linear/linear.h"
#include "ops/pooling/pooling.h"
#include "parallel/sequence.h"

namespace bloomery {

WholeLinear::WholeLinear(const std::string& name, std::int64_t out, std::int64_t in,
                         const Init& init, const Mesh& mesh, Rows rows)
    : weight(std::make_unique<Parameter>(
          make_parameter(name + ".weight", Box::whole({out, in}), init, true))),
      bias(std::make_unique<Parameter>(
          make_parameter(name + ".bias", Box::whole({out}), {}, false))) {
  if (rows == Rows::local_tokens && mesh.divides_tokens()) {
    weight->grad_axes = bias->grad_axes = kTokenReplicaAxes;
  }
}

void WholeLinear::collect(ParameterList& parameters) const {
  parameters.push_back(weight.get());
  parameters.push_back(bias.get());
}

Value first_of_sequences(Context& context, const Value& x) {
  Value first = first_tokens(context, x, local_tokens(context.mesh, context.batch));
  if (context.mesh.divides_tokens()) {
    context.mesh.axis(Axis::tensor).all_reduce(first.data, Reduce::sum, context.stream);
  }
  return first;
}

Value pooled(Context& context, const Value& x, const WholeLinear& pooler) {
  const Value first = first_of_sequences(context, x);
  return tanh(context, linear(context, first, *pooler.weight, pooler.bias.get()));
}

}  // namespace bloomery
