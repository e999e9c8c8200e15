#include "nn/moe.h"

#include <cmath>

#include "autograd/metrics.h"
#include "ops/activation/activation.h"
#include "ops/moe/draws.h"
#include "ops/moe/grouped_linear.h"
#include "ops/moe/router.h"
#include "parallel/sequence.h"

namespace bloomery {
namespace {

std::unique_ptr<Parameter> make(const std::string& name, const Box& box, const Init& init,
                                bool decay, AxisSet grad_axes) {
  auto parameter = std::make_unique<Parameter>(make_parameter(name, box, init, decay));
  parameter->grad_axes = grad_axes;
  return parameter;
}

// Of parameters that each tensor rank applies to a part of what there is.
AxisSet axes_of(bool parts) { return parts ? kTokenReplicaAxes : kReplicaAxes; }

// PyTorch's default for linear layers, which gates are made with.
Init small_init(std::int64_t hidden) {
  return {Init::Kind::uniform, 1 / std::sqrt(static_cast<double>(hidden))};
}

}  // namespace

bool MoeOptions::any() const {
  for (const std::int64_t count : num_experts) {
    if (count > 1) {
      return true;
    }
  }
  return false;
}

std::int64_t MoeOptions::experts_of(std::int64_t layer) const {
  for (const std::int64_t dense : dense_layers) {
    if (dense == layer) {
      return 1;
    }
  }
  const auto place = num_experts.size() == 1 ? 0 : static_cast<std::size_t>(layer / interval);
  return (layer + 1) % interval == 0 && place < num_experts.size() ? num_experts[place] : 1;
}

Moe::Moe(const std::string& name, int layer, const ModelOptions& options, const Mesh& mesh)
    : options_(options.moe),
      mlp_(options.mlp),
      num_experts_(options.moe.experts_of(layer)),
      purpose_(concat("router/", layer)) {
  std::int64_t layers = 0;
  for (std::int64_t other = 0; other < options.num_layers; ++other) {
    layers += options_.experts_of(other) > 1 ? 1 : 0;
  }
  share_of_layers_ = 1 / static_cast<double>(layers);
  router_ = make(name + ".router.weight", Box::whole({num_experts_, options.hidden_size}),
                 small_init(options.hidden_size), true, axes_of(mesh.degree(Axis::tensor) > 1));
  make_experts(name + ".experts", options, mesh);
  make_branch(name, options, mesh);
}

// Cut over the expert axis and, as an MLP is, over the tensor ranks.
void Moe::make_experts(const std::string& name, const ModelOptions& options, const Mesh& mesh) {
  const std::int64_t hidden = options.hidden_size, ffn = options_.ffn;
  const auto held = [&](const Shape& shape, int ffn_dim) {
    const Box box =
        Box::whole(shape).split(0, mesh.coordinate(Axis::expert), mesh.degree(Axis::expert));
    return ffn_dim < 0
               ? box
               : box.split(ffn_dim, mesh.coordinate(Axis::tensor), mesh.degree(Axis::tensor));
  };
  const bool gated = mlp_.gated();
  Shape up = gated ? Shape{num_experts_, 2, ffn} : Shape{num_experts_, ffn};
  const Shape up_bias = up;
  up.append(hidden);
  up_ = make(name + ".up.weight", held(up, gated ? 2 : 1),
             weight_init(options, hidden, ffn * (gated ? 2 : 1)), true, kExpertReplicaAxes);
  down_ = make(name + ".down.weight", held({num_experts_, hidden, ffn}, 2),
               weight_init(options, ffn, hidden, true), true, kExpertReplicaAxes);
  if (*mlp_.bias) {
    up_bias_ = make(name + ".up.bias", held(up_bias, gated ? 2 : 1), {}, false, kExpertReplicaAxes);
    down_bias_ =
        make(name + ".down.bias", held({num_experts_, hidden}, -1), {}, false, kExpertReplicaAxes);
  }
}

void Moe::make_branch(const std::string& name, const ModelOptions& options, const Mesh& mesh) {
  const std::int64_t hidden = options.hidden_size;
  const AxisSet axes = axes_of(mesh.divides_tokens());
  if (options_.kind == MoeKind::residual) {
    branch_.emplace(name + ".residual", options, mesh);
    coefficient_ =
        make(name + ".coefficient.weight", Box::whole({2, hidden}), small_init(hidden), true, axes);
    coefficient_bias_ =
        make(name + ".coefficient.bias", Box::whole({2}), small_init(hidden), false, axes);
  } else if (options_.shared_ffn > 0) {
    ModelOptions shared = options;
    shared.mlp.ffn = options_.shared_ffn;
    branch_.emplace(name + ".shared", shared, mesh);
    coefficient_ = make(name + ".shared_gate.weight", Box::whole({1, hidden}),
                        weight_init(options, hidden, 1), true, axes);
  }
}

// Random numbers need to know which tokens these are, and a text that is being generated should not
// depend on what else is in the batch: there nothing is drawn and nothing dropped.
RoutingOptions Moe::routing_options(const Context& context, bool random) const {
  const MoeOptions& o = options_;
  const bool first = context.mesh.coordinate(Axis::tensor) == 0;  // ranks have parts of a sum
  RoutingOptions options;
  options.rule.topk = static_cast<int>(o.topk);
  options.rule.renormalise = *o.renormalise;
  options.rule.sampling =
      o.topk == 2 && o.sample_second && random ? Sampling::second : Sampling::none;
  options.rule.priority = o.topk > 2                                    ? Priority::probability
                          : o.topk == 1 && o.random_selection && random ? Priority::random
                                                                        : Priority::position;
  options.rule.balance = *o.balance_all_choices ? Balance::all_choices : Balance::first_choices;
  options.order = {context.batch.num_sequences, context.batch.length};
  options.balance_coefficient = first ? static_cast<float>(o.loss_coefficient) : 0;
  options.z_coefficient = first ? static_cast<float>(o.z_coefficient) : 0;
  if (o.drop_tokens && context.cache == nullptr) {
    options.capacity = expert_capacity(
        context.batch.num_tokens() * context.mesh.degree(Axis::context), num_experts_,
        options.rule.topk, context.training ? o.train_capacity : o.eval_capacity, o.min_capacity);
  }
  return options;
}

Routing Moe::routed(Context& context, const Value& x) const {
  const bool random = context.batch.samples && context.batch.places && context.cache == nullptr;
  const RoutingOptions options = routing_options(context, random);
  const RandomKey key = random_key(context.seed, purpose_);
  const bool jitters = options_.jitter > 0 && context.training && random;
  const Value seen = jitters ? jitter(context, x, static_cast<float>(options_.jitter),
                                      random_key(context.seed, purpose_ + "/jitter"))
                             : x;
  const Value logits = router_logits(context, seen, *router_);
  Tensor draws;
  if (options.rule.sampling != Sampling::none) {
    draws = draw_for_tokens(context, DrawKind::gumbel, key, num_experts_);
  } else if (options.rule.priority == Priority::random && options.capacity > 0) {
    draws = draw_for_tokens(context, DrawKind::uniform, key, num_experts_);
  }
  AllTokens all;
  if (context.mesh.degree(Axis::context) > 1) {
    all = {of_all_sequence_ranks(context, logits.data),
           draws ? of_all_sequence_ranks(context, draws) : Tensor(),
           logits.shape()[0] * context.mesh.coordinate(Axis::context)};
  }
  return route(context, logits, draws, options, all);
}

// Losses are sums over the ranks that hold parts of the sequences, which all know the same.
void Moe::report(Context& context, const Routing& routing) const {
  if (context.metrics == nullptr || context.recomputing ||
      context.mesh.coordinate(Axis::context) != 0) {
    return;
  }
  const auto tell = [&](const char* name, RoutingFigure figure, double factor) {
    context.metrics->report_beside(name, routing.figures.range(figure, {1}), factor);
  };
  tell("moe loss", kBalanceLoss, options_.loss_coefficient);
  if (options_.z_coefficient > 0) {
    tell("router z-loss", kZLoss, options_.z_coefficient);
  }
  tell("largest expert load", kLargestLoad, share_of_layers_);
  if (options_.drop_tokens) {
    tell("dropped tokens", kDroppedShare, share_of_layers_);
  }
}

Value Moe::experts(Context& context, const Value& rows, const RowGroups& groups) const {
  const Activation activation = mlp_.activation();
  const bool first = context.mesh.coordinate(Axis::tensor) == 0;
  Value y = grouped_linear(context, rows, *up_, up_bias_.get(), groups,
                           {.activation = mlp_.gated() ? Activation::none : activation});
  if (mlp_.gated()) {
    y = gated_activation(context, y, activation);
  }
  return grouped_linear(context, y, *down_, down_bias_.get(), groups, {.add_bias = first});
}

Value Moe::operator()(Context& context, const Value& held) const {
  const Value x = tokens_for_experts(context, held);
  const Routing routing = routed(context, x);
  report(context, routing);
  const Dispatch dispatch = sort_by_expert(context.stream, routing.experts, num_experts_);
  const ExpertExchange exchange(context, dispatch.groups);
  Value rows = exchange.to_experts(context, permute(context, x, dispatch));
  rows = exchange.from_experts(context, experts(context, rows, exchange.groups()));
  const Value y = sum_to_local_tokens(context, combine(context, rows, routing.gates, dispatch));
  if (!branch_) {
    return y;
  }
  const Value logits = linear(context, held, *coefficient_, coefficient_bias_.get());
  return mix(context, y, (*branch_)(context, held), logits,
             options_.kind == MoeKind::residual ? MixKind::softmax : MixKind::logistic);
}

void Moe::collect(ParameterList& parameters) const {
  for (Parameter* parameter : {router_.get(), up_.get(), up_bias_.get(), down_.get(),
                               down_bias_.get(), coefficient_.get(), coefficient_bias_.get()}) {
    if (parameter != nullptr) {
      parameters.push_back(parameter);
    }
  }
  if (branch_) {
    branch_->collect(parameters);
  }
}

FeedForward::FeedForward(const std::string& block, int layer, const ModelOptions& options,
                         const Mesh& mesh) {
  if (options.moe.experts_of(layer) > 1) {
    moe_.emplace(block + ".moe", layer, options, mesh);
  } else {
    mlp_.emplace(block + ".mlp", options, mesh);
  }
}

Value FeedForward::operator()(Context& context, const LinearInput& x) const {
  return mlp_ ? (*mlp_)(context, x) : (*moe_)(context, x.value);
}

void FeedForward::collect(ParameterList& parameters) const {
  mlp_ ? mlp_->collect(parameters) : moe_->collect(parameters);
}

}  // namespace bloomery
