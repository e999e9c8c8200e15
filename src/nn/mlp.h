// The feed-forward branch: up, activation (gated or not), down.
#pragma once

#include "nn/model_options.h"
#include "parallel/parallel_linear.h"

namespace bloomery {

class Mlp {
 public:
  Mlp(const std::string& name, const ModelOptions& options, const Mesh& mesh);

  // [tokens, hidden] to the same.
  Value operator()(Context& context, const LinearInput& x) const;
  void collect(ParameterList& parameters) const;

 private:
  Value dropped(Context& context, const Value& activated) const;

  MlpOptions options_;
  std::string dropout_purpose_;
  std::int64_t first_channel_;  // of those held here
  ParallelLinear up_, down_;
};

}  // namespace bloomery
