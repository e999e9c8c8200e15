// The feed-forward branch of a layer: an MLP, or a mixture of experts.
#pragma once

#include <optional>

#include "nn/mlp.h"
#include "ops/moe/mix.h"
#include "parallel/experts.h"

namespace bloomery {

class Moe {
 public:
  Moe(const std::string& name, int layer, const ModelOptions& options, const Mesh& mesh);

  // [tokens, hidden] to the same. The balance loss starts its own gradient (batch.grad_scale times
  // its coefficient); its value and the load of the experts are reported beside the losses.
  Value operator()(Context& context, const Value& held) const;
  void collect(ParameterList& parameters) const;

 private:
  void make_experts(const std::string& name, const ModelOptions& options, const Mesh& mesh);
  void make_branch(const std::string& name, const ModelOptions& options, const Mesh& mesh);
  Routing routed(Context& context, const Value& x) const;
  RoutingOptions routing_options(const Context& context, bool random) const;
  Value experts(Context& context, const Value& rows, const RowGroups& groups) const;
  void report(Context& context, const Routing& routing) const;

  MoeOptions options_;
  MlpOptions mlp_;
  std::int64_t num_experts_;
  double share_of_layers_;  // one of all layers with a mixture
  std::string purpose_;
  std::unique_ptr<Parameter> router_, up_, up_bias_, down_, down_bias_;
  // An MLP for all tokens and what weighs it: the residual of PR-MoE, or Qwen's shared expert.
  std::optional<Mlp> branch_;
  std::unique_ptr<Parameter> coefficient_, coefficient_bias_;
};

class FeedForward {
 public:
  FeedForward(const std::string& block, int layer, const ModelOptions& options, const Mesh& mesh);
  Value operator()(Context& context, const LinearInput& x) const;
  void collect(ParameterList& parameters) const;

 private:
  std::optional<Mlp> mlp_;
  std::optional<Moe> moe_;
};

}  // namespace bloomery
