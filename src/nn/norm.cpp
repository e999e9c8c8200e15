#include "nn/norm.h"

#include "parallel/sequence.h"

namespace bloomery {

Norm::Norm(const std::string& name, std::int64_t hidden, const NormOptions& options,
           const Mesh& mesh)
    : options_(options) {
  const Box box = Box::whole({hidden});
  const Init gain{options.one_plus_gain ? Init::Kind::zeros : Init::Kind::ones};
  gain_ = std::make_unique<Parameter>(make_parameter(name + ".gain", box, gain, false));
  if (options.kind == NormKind::layer) {
    bias_ = std::make_unique<Parameter>(make_parameter(name + ".bias", box, {}, false));
  }
  if (mesh.divides_tokens()) {
    for (Parameter* const parameter : {gain_.get(), bias_.get()}) {
      if (parameter != nullptr) {
        parameter->grad_axes = kTokenReplicaAxes;
      }
    }
  }
}

DropoutOptions pending_dropout(const Context& context, const State& state) {
  return {state.pending_dropout, state.pending_key, local_tokens(context.mesh, context.batch)};
}

LinearInput Norm::operator()(Context& context, State& state) const {
  NormResult result = add_norm(context, state.stream, state.pending, *gain_, bias_.get(), options_,
                               pending_dropout(context, state));
  state.stream = std::move(result.stream);
  state.pending = {};
  state.pending_dropout = 0;
  return {std::move(result.y), std::move(result.rematerialize)};
}

void Norm::collect(ParameterList& parameters) const {
  parameters.push_back(gain_.get());
  if (bias_) {
    parameters.push_back(bias_.get());
  }
}

}  // namespace bloomery
