#include "ops/moe/routing.h"

#include <algorithm>
#include <cmath>

#include "base/round_up.h"

namespace bloomery {
namespace {

void check_route(const Value& logits, const Tensor& draws, const RoutingOptions& options) {
  const RouterRule& rule = options.rule;
  check(logits.shape().rank() == 2 && logits.dtype() == accumulation_dtype(logits.dtype()),
        "route: logits are ", logits.dtype(), logits.shape(),
        ", but must be [tokens, experts] of the accumulation dtype");
  const std::int64_t experts = logits.shape()[1];
  check(rule.topk >= 1 && rule.topk <= kMostChoices && rule.topk <= experts, "route: topk ",
        rule.topk, " of ", experts, " experts; at most ", kMostChoices, " can be chosen");
  const bool random = rule.sampling != Sampling::none ||
                      (options.capacity > 0 && rule.priority == Priority::random);
  check(!random || (draws && draws.dtype() == DType::fp32 && draws.shape() == logits.shape()),
        "route: this rule needs a draw for each token and expert");
  check(
      rule.sampling == Sampling::none || rule.priority != Priority::random || options.capacity == 0,
      "route: one set of draws cannot both choose experts and decide whom they serve");
}

// The gradient of the logits held here.
void record(Context& context, const Value& logits, const Routing& routing, const Tensor& load,
            const RoutingOptions& options, std::int64_t tokens) {
  RouteBackward kernel{.logits = logits.data,
                       .experts = routing.experts,
                       .load = load,
                       .grad_scale = context.batch.grad_scale,
                       .tokens = tokens,
                       .rule = options.rule,
                       .balance_coefficient = options.balance_coefficient,
                       .z_coefficient = options.z_coefficient};
  context.tape->record(
      {.op = "route",
       .input_gradient =
           [kernel, logits = logits.slot, gates = routing.gates.slot, kept = logits.data,
            experts = routing.experts, load, scale = context.batch.grad_scale](Tape& tape) {
             RouteBackward k = kernel;
             const Tensor& grad = tape.grad(gates);
             k.grad_gates = grad ? ConstView(grad) : ConstView();
             const Sink sink = tape.sink(logits);
             k.grad_logits = sink.target;
             k.add = sink.add;
             launch(tape.stream(), k);
           },
       .saved = {logits.data, routing.experts},
       .shape = routing.gates.shape()});
}

}  // namespace

// As DeepSpeed computes it, in fp32.
std::int64_t expert_capacity(std::int64_t tokens, std::int64_t experts, int topk, double factor,
                             std::int64_t least) {
  const auto share = static_cast<float>(static_cast<double>(tokens) / static_cast<double>(experts));
  const float room = std::ceil(share * static_cast<float>(factor * topk));
  return std::max(static_cast<std::int64_t>(room), least);
}

Routing route(Context& context, const Value& logits, const Tensor& draws,
              const RoutingOptions& options, const AllTokens& all) {
  const OpScope scope(context.stream, "route");
  check_route(logits, draws, options);
  Stream& stream = context.stream;
  const Tensor& every = all.logits ? all.logits : logits.data;
  const Tensor& every_draw = all.logits ? all.draws : draws;
  const DType dtype = logits.dtype();
  const std::int64_t tokens = every.shape()[0], experts = every.shape()[1];
  const RouterRule& rule = options.rule;
  const Shape pairs = {tokens, rule.topk};
  const Tensor chosen = Tensor::empty(stream, DType::int32, pairs);
  const Tensor scores = Tensor::empty(stream, dtype, pairs);
  const std::int64_t num_parts = (tokens + kTokensPerPart - 1) / kTokensPerPart;
  const Tensor parts = Tensor::empty(stream, dtype, {num_parts, 3 * experts + 1});
  const Tensor load = Tensor::empty(stream, dtype, {2, experts});
  Routing routing{.figures = Tensor::empty(stream, dtype, {kRoutingFigures})};
  const ConstView numbers = every_draw ? ConstView(every_draw) : ConstView();
  launch(stream, ChooseExperts{.logits = every,
                               .draws = numbers,
                               .experts = chosen,
                               .scores = scores,
                               .parts = parts,
                               .rule = rule});
  launch(stream, SumRouting{.parts = parts,
                            .load = load,
                            .figures = routing.figures,
                            .tokens = tokens,
                            .capacity = options.capacity,
                            .rule = rule});
  if (options.capacity > 0) {
    launch(stream, DropOverCapacity{.experts = chosen,
                                    .scores = scores,
                                    .draws = numbers,
                                    .num_experts = experts,
                                    .capacity = options.capacity,
                                    .priority = rule.priority,
                                    .order = options.order});
  }
  const std::int64_t held = logits.shape()[0];
  routing.experts = chosen.slice(all.first, all.first + held);
  routing.gates = context.output(dtype, {held, rule.topk});
  launch(stream, MakeGates{.experts = routing.experts,
                           .scores = scores.slice(all.first, all.first + held),
                           .gates = routing.gates.data,
                           .renormalise = rule.renormalise});
  if (context.tape != nullptr && logits.wants_grad()) {
    record(context, logits, routing, load, options, tokens);
  }
  return routing;
}

std::int64_t group_alignment(const Stream& stream) {
  return stream.device().rules() == DeviceKind::cuda ? 128 : 1;
}

Dispatch sort_by_expert(Stream& stream, const Tensor& experts, std::int64_t num_experts) {
  const OpScope scope(stream, "sort_by_expert");
  const std::int64_t alignment = group_alignment(stream), pairs = experts.numel();
  // Of `pairs` rows in groups, each group may leave all but one row of a tile empty.
  const std::int64_t most = pairs + std::min(num_experts, pairs) * (alignment - 1);
  Dispatch dispatch;
  dispatch.groups.rows = round_up(most, alignment);
  dispatch.groups.offsets = Tensor::empty(stream, DType::int32, {num_experts + 1});
  dispatch.source = Tensor::empty(stream, DType::int32, {dispatch.groups.rows});
  dispatch.places = Tensor::empty(stream, DType::int32, experts.shape());
  if (alignment > 1) {
    dispatch.groups.tiles = Tensor::empty(stream, DType::int32, {dispatch.groups.rows / alignment});
  }
  launch(stream, SortByExpert{.experts = experts,
                              .offsets = dispatch.groups.offsets,
                              .source = dispatch.source,
                              .places = dispatch.places,
                              .tiles = dispatch.groups.tiles ? View(dispatch.groups.tiles) : View(),
                              .alignment = alignment});
  return dispatch;
}

}  // namespace bloomery
