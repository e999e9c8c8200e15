// The feed-forward branch: up, activation (gated or not), down.
#pragma once

#include "nn/model_options.h"
#include "parallel/parallel_linear.h"

namespace bloomery {

class Mlp {
 public:
  Mlp(const std::string& name, const ModelOptions& options, const Mesh& mesh);

  Value operator()(Context& context, const Value& x) const;  // [tokens, hidden] to the same
  void collect(ParameterList& parameters) const;

 private:
  MlpOptions options_;
  ParallelLinear up_, down_;
};

}  // namespace bloomery
