#include "nn/mlp.h"

#include "ops/activation/activation.h"

namespace bloomery {

Mlp::Mlp(const std::string& name, const TransformerOptions& options, const Mesh& mesh)
    : activation_(options.activation),
      gated_(options.gated),
      up_(mesh, name + ".up", options.gated ? Shape{2, options.ffn} : Shape{options.ffn},
          options.gated ? 1 : 0, options.hidden, options.bias,
          weight_init(options, options.weight_init, options.hidden,
                      options.ffn * (options.gated ? 2 : 1))),
      down_(mesh, name + ".down", options.hidden, options.ffn, options.bias,
            weight_init(options, options.output_init, options.ffn, options.hidden)) {}

Value Mlp::operator()(Context& context, const Value& x) const {
  if (gated_) {
    return down_(context, gated_activation(context, up_(context, x), activation_));
  }
  return down_(context, up_(context, x, activation_));
}

void Mlp::collect(ParameterList& parameters) const {
  up_.collect(parameters);
  down_.collect(parameters);
}

}  // namespace bloomery
