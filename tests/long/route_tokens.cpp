// bloomery_route_tokens: routes the tokens of the cases on the standard input, for
// tests/long/gating.py. A case is numbers between spaces: tokens, experts, topk, sampling,
// priority, renormalise, balance (as in ops/moe/router_rule.h), whether tokens are dropped,
// capacity factor, least capacity, then logits and draws. The answer is a line: capacity, balance
// loss, and for each choice the expert and the gate.
#include <iostream>

#include "comm/mesh.h"
#include "ops/moe/routing.h"

namespace bloomery {
namespace {

template <class T>
T next() {
  T value{};
  check(static_cast<bool>(std::cin >> value), "a case ends early");
  return value;
}

std::vector<float> numbers(std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(next<float>());
  }
  return values;
}

void route_case(Stream& stream, std::int64_t tokens) {
  const auto experts = next<std::int64_t>();
  RoutingOptions options;
  options.rule.topk = next<int>();
  options.rule.sampling = static_cast<Sampling>(next<int>());
  options.rule.priority = static_cast<Priority>(next<int>());
  options.rule.renormalise = next<int>() != 0;
  options.rule.balance = static_cast<Balance>(next<int>());
  const bool drop = next<int>() != 0;
  const auto factor = next<double>();
  const auto least = next<std::int64_t>();
  options.capacity = drop ? expert_capacity(tokens, experts, options.rule.topk, factor, least) : 0;
  options.order = {.num_sequences = 1, .length = tokens};
  Mesh mesh = Mesh::single();
  const Batch batch;
  Context context{.stream = stream, .mesh = mesh, .batch = batch};
  const Value logits{Tensor::from_host(stream, numbers(tokens * experts), {tokens, experts}), {}};
  const Tensor draws = Tensor::from_host(stream, numbers(tokens * experts), {tokens, experts});
  const Routing routing = route(context, logits, draws, options);
  std::cout.precision(9);
  std::cout << options.capacity << ' ' << routing.figures.to_host<float>(stream)[kBalanceLoss];
  const auto chosen = routing.experts.to_host<std::int32_t>(stream);
  const auto gates = routing.gates.data.to_host<float>(stream);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    std::cout << ' ' << chosen[i] << ' ' << gates[i];
  }
  std::cout << '\n';
}

}  // namespace
}  // namespace bloomery

int main() {
  bloomery::Device device({.num_threads = 2});
  bloomery::Stream stream(device);
  for (std::int64_t tokens = 0; std::cin >> tokens;) {
    bloomery::route_case(stream, tokens);
  }
  return 0;
}
