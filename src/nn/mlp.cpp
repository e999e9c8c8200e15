#include "nn/mlp.h"

#include "autograd/features.h"
#include "nn/adapter.h"
#include "ops/activation/activation.h"
#include "ops/dropout/dropout.h"

namespace bloomery {

Mlp::Mlp(const std::string& name, const ModelOptions& options, const Mesh& mesh)
    : options_(options.mlp),
      dropout_purpose_(name + " dropout"),
      first_channel_(options_.ffn / mesh.degree(Axis::tensor) * mesh.coordinate(Axis::tensor)),
      up_(ParallelLinear::column(
          mesh, name + ".up", options_.gated() ? Shape{2, options_.ffn} : Shape{options_.ffn},
          options_.gated() ? 1 : 0, options.hidden_size, *options_.bias,
          weight_init(options, options.hidden_size, options_.ffn * (options_.gated() ? 2 : 1)),
          adapter_for(options, name + ".up"))),
      down_(ParallelLinear::row(mesh, name + ".down", options.hidden_size, options_.ffn,
                                *options_.bias,
                                weight_init(options, options_.ffn, options.hidden_size, true),
                                adapter_for(options, name + ".down"))) {}

Value Mlp::operator()(Context& context, const LinearInput& x) const {
  const Activation activation = options_.activation();
  if (context.training && options_.dropout > 0) {
    return down_(
        context,
        dropped(context, options_.gated() ? gated_activation(context, up_(context, x), activation)
                                          : up_(context, x, activation)));
  }
  if (options_.gated()) {
    const Value up = up_(context, x);
    Value y = gated_activation(context, up, activation);
    Rematerialize rematerialize;
    if (context.features.activations.remake_cheap_values) {
      rematerialize = [x = up.data, shape = y.shape(), activation](Stream& stream) {
        Tensor made = Tensor::empty(stream, x.dtype(), shape);
        launch(stream, GatedForward{.x = x, .y = made, .activation = activation});
        return made;
      };
    }
    return down_(context, {std::move(y), std::move(rematerialize)});
  }
  if (context.features.fp8 != nullptr) {
    return down_(context, {up_(context, x, activation, false), activation});  // by the cast
  }
  return down_(context, up_(context, x, activation));
}

// Of all tokens, in front of the second product.
Value Mlp::dropped(Context& context, const Value& activated) const {
  return dropout(
      context, activated,
      {.probability = options_.dropout, .key = random_key(context.seed, dropout_purpose_)},
      first_channel_);
}

void Mlp::collect(ParameterList& parameters) const {
  up_.collect(parameters);
  down_.collect(parameters);
}

}  // namespace bloomery
