#include "ops/moe/routing.h"

#include <cmath>

#include "comm/mesh.h"
#include "harness/device_test.h"
#include "harness/op_harness.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/moe/draws.h"
#include "ops/moe/router.h"

namespace bloomery::testing {
namespace {

OpCase gate_case(const std::string& name, std::int64_t tokens, std::int64_t experts,
                 RoutingOptions options, bool losses) {
  options.order = {.num_sequences = 1, .length = tokens};
  OpCase result;
  result.name = name;
  result.inputs = {{.name = "logits", .shape = {tokens, experts}},
                   {.name = "draws", .role = Role::real, .shape = {tokens, experts}}};
  result.forward = [=](Context& context, Inputs& in) -> Outputs {
    const Routing routing = route(context, in.value("logits"), in.tensor("draws"), options);
    if (!losses) {
      return {{"gates", routing.gates}};
    }
    const Tensor loss = Tensor::empty(context.stream, routing.figures.dtype(), {1});
    const auto add = [&](RoutingFigure figure, float factor, bool to) {
      launch(context.stream,
             ScaleAdd{
                 .x = routing.figures.range(figure, {1}), .y = loss, .factor = factor, .add = to});
    };
    add(kBalanceLoss, options.balance_coefficient, false);
    add(kZLoss, options.z_coefficient, true);
    return {{"loss", {loss, nullptr}}};
  };
  result.seed_outputs = !losses;
  result.dtypes = {DType::fp32};
  result.tolerance = {{DType::fp32, 2e-6}};
  return result;
}

OpCase router_case(std::int64_t tokens, std::int64_t experts, std::int64_t hidden) {
  OpCase result;
  result.name = concat("tokens=", tokens, ",experts=", experts, ",hidden=", hidden);
  result.inputs = {{.name = "x", .shape = {tokens, hidden}},
                   {.name = "weight", .role = Role::parameter, .shape = {experts, hidden}}};
  result.forward = [](Context& context, Inputs& in) -> Outputs {
    return {{"logits", router_logits(context, in.value("x"), in.parameter("weight"))}};
  };
  result.tolerance = {{DType::fp32, 1e-6}, {DType::bf16, 4e-3}, {DType::fp16, 5e-4}};
  return result;
}

const bool kRegistered =
    register_op_tests(
        "route",
        {gate_case("top-1", 37, 5, {.rule = {.topk = 1}}, false),
         gate_case("top-2, renormalised, with capacity", 300, 4,
                   {.rule = {.topk = 2, .renormalise = true, .priority = Priority::position},
                    .capacity = 120},
                   false),
         gate_case("top-3, by probability", 64, 6,
                   {.rule = {.topk = 3,
                             .renormalise = true,
                             .priority = Priority::probability,
                             .balance = Balance::all_choices},
                    .capacity = 20},
                   false),
         gate_case("losses of first choices", 300, 7,
                   {.rule = {.topk = 2}, .balance_coefficient = 0.5f, .z_coefficient = 0.25f},
                   true),
         gate_case("losses of all choices", 31, 3,
                   {.rule = {.topk = 2, .balance = Balance::all_choices},
                    .balance_coefficient = 2,
                    .z_coefficient = 0.1f},
                   true)}) &&
    register_op_tests("router", {router_case(7, 3, 19), router_case(260, 8, 64)});

class Route : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, Route, every_device(), device_label);

struct Found {
  std::vector<float> gates, figures;
  std::vector<std::int32_t> experts;
};

Found run_route(DeviceKind kind, std::int64_t tokens, std::int64_t experts,
                const std::vector<float>& logits, const std::vector<float>& draws,
                RoutingOptions options) {
  Machine machine(kind);
  Mesh mesh = Mesh::single();
  const Batch batch;
  Context context{.stream = machine.stream, .mesh = mesh, .batch = batch};
  const Value x{Tensor::from_host(machine.stream, logits, {tokens, experts}), nullptr};
  const Tensor numbers =
      draws.empty() ? Tensor() : Tensor::from_host(machine.stream, draws, {tokens, experts});
  const Routing routing = route(context, x, numbers, options);
  return {routing.gates.data.to_host<float>(machine.stream),
          routing.figures.to_host<float>(machine.stream),
          routing.experts.to_host<std::int32_t>(machine.stream)};
}

// DeepSpeed's numbers for logits[s][e] = 2 sin(1.3 s + 0.7 e^2 + 0.1 s e), 12 tokens, 4 experts.
std::vector<float> golden_logits() {
  std::vector<float> logits;
  for (int s = 0; s < 12; ++s) {
    for (int e = 0; e < 4; ++e) {
      logits.push_back(static_cast<float>(2 * std::sin(1.3 * s + 0.7 * e * e + 0.1 * s * e)));
    }
  }
  return logits;
}

TEST_P(Route, TopTwoOfDeepSpeed) {
  const std::int64_t capacity = expert_capacity(12, 4, 2, 0.75, 1);
  ASSERT_EQ(capacity, 5);
  const Found found =
      run_route(GetParam(), 12, 4, golden_logits(), {},
                {.rule = {.topk = 2, .renormalise = true, .priority = Priority::position},
                 .capacity = capacity,
                 .order = {.num_sequences = 1, .length = 12}});
  const std::vector<std::int32_t> second = {2, 0, 3, 0, 3, 3, 1, -1, -1, 1, -1, -1};
  const std::vector<float> first_gates = {.64987f, .51768f, .76518f, .95591f, .71164f, .50070f,
                                          .79558f, 1,       1,       .64180f, 1,       1};
  for (std::size_t t = 0; t < 12; ++t) {
    EXPECT_EQ(found.experts[2 * t + 1], second[t]) << t;
    EXPECT_NEAR(found.gates[2 * t], first_gates[t], 6e-6) << t;
  }
  EXPECT_NEAR(found.figures[kBalanceLoss], 1.029752, 1e-6);
  EXPECT_NEAR(found.figures[kDroppedShare], 4.0 / 24, 1e-6);
}

TEST_P(Route, TopOneKeepsTheHighestDraws) {
  const std::vector<float> logits = golden_logits();
  const Found all = run_route(GetParam(), 12, 4, logits, {}, {.rule = {.topk = 1}});
  std::vector<int> counts(4, 0);
  for (const std::int32_t e : all.experts) {
    ++counts[static_cast<std::size_t>(e)];
  }
  EXPECT_EQ(counts, (std::vector<int>{3, 3, 4, 2}));
  std::vector<float> draws(48);
  for (std::size_t i = 0; i < draws.size(); ++i) {
    draws[i] = static_cast<float>(i * 29 % 48) / 48;
  }
  const Found kept = run_route(GetParam(), 12, 4, logits, draws,
                               {.rule = {.topk = 1, .priority = Priority::random}, .capacity = 2});
  for (std::size_t e = 0; e < 4; ++e) {
    float lowest_kept = 2, highest_dropped = -1;
    int kept_count = 0;
    for (std::size_t t = 0; t < 12; ++t) {
      if (all.experts[t] == static_cast<std::int32_t>(e)) {
        const bool in = kept.experts[t] >= 0;
        kept_count += in ? 1 : 0;
        (in ? lowest_kept : highest_dropped) = in ? std::min(lowest_kept, draws[4 * t + e])
                                                  : std::max(highest_dropped, draws[4 * t + e]);
        EXPECT_EQ(kept.gates[t], in ? all.gates[t] : 0);
      }
    }
    EXPECT_EQ(kept_count, 2) << e;
    EXPECT_GT(lowest_kept, highest_dropped) << e;
  }
}

// Tokens are served position by position, of each all sequences; rows lie sequence by sequence, and
// of several ranks one after another.
TEST_P(Route, ServesTokensInTheOrderOfPositions) {
  const std::vector<float> logits(12, 1.0f);  // one expert for all
  const auto kept = [&](TokenOrder order) {
    const Found found = run_route(
        GetParam(), 12, 1, logits, {},
        {.rule = {.topk = 1, .priority = Priority::position}, .capacity = 5, .order = order});
    std::vector<int> rows;
    for (int t = 0; t < 12; ++t) {
      if (found.experts[static_cast<std::size_t>(t)] == 0) {
        rows.push_back(t);
      }
    }
    return rows;
  };
  EXPECT_EQ(kept({.num_sequences = 1, .length = 12}), (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(kept({.num_sequences = 3, .length = 4}), (std::vector<int>{0, 1, 4, 5, 8}));
  EXPECT_EQ(kept({.num_sequences = 3, .length = 2}), (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST_P(Route, SecondExpertIsDrawn) {
  const std::vector<float> logits = {3, 2, 1, 0}, draws = {9, 0, 0, 5};
  const auto experts = [&](Sampling sampling) {
    return run_route(GetParam(), 1, 4, logits, draws, {.rule = {.topk = 2, .sampling = sampling}})
        .experts;
  };
  EXPECT_EQ(experts(Sampling::none), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(experts(Sampling::second), (std::vector<std::int32_t>{0, 3}));
  EXPECT_EQ(experts(Sampling::first), (std::vector<std::int32_t>{0, 1}));
}

// As functions of sample and place, so that any part of a batch draws the same.
TEST_P(Route, DrawsDependOnCoordinatesAlone) {
  Machine machine(GetParam());
  Mesh mesh = Mesh::single();
  const auto draw = [&](std::vector<std::int64_t> samples, std::vector<std::int32_t> places,
                        DrawKind kind) {
    Batch batch;
    batch.num_sequences = static_cast<std::int64_t>(samples.size());
    batch.length = static_cast<std::int64_t>(places.size());
    batch.samples = Tensor::from_host(machine.stream, samples, {batch.num_sequences});
    batch.places = Tensor::from_host(machine.stream, places, {batch.length});
    Context context{.stream = machine.stream, .mesh = mesh, .batch = batch};
    return draw_for_tokens(context, kind, 77, 5).to_host<float>(machine.stream);
  };
  const auto whole = draw({3, 9}, {0, 1, 2, 3}, DrawKind::uniform);
  const auto part = draw({9}, {2, 3}, DrawKind::uniform);
  EXPECT_EQ(part, std::vector<float>(whole.begin() + 30, whole.end()));
  double mean = 0, gumbel_mean = 0;
  std::vector<std::int32_t> places(2000);
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = static_cast<std::int32_t>(i);
  }
  for (const float u : draw({1}, places, DrawKind::uniform)) {
    EXPECT_TRUE(u > 0 && u < 1) << u;
    mean += u / 10000;
  }
  for (const float g : draw({1}, places, DrawKind::gumbel)) {
    gumbel_mean += g / 10000;
  }
  EXPECT_NEAR(mean, 0.5, 0.01);
  EXPECT_NEAR(gumbel_mean, 0.5772, 0.05);
}

TEST(ExpertCapacity, IsDeepSpeeds) {
  EXPECT_EQ(expert_capacity(10, 4, 1, 1.0, 1), 3);
  EXPECT_EQ(expert_capacity(12, 4, 1, 1.0, 4), 4);
  EXPECT_EQ(expert_capacity(12, 4, 2, 1.0, 4), 6);
}

OpCase jitter_case() {
  OpCase result;
  result.name = "tokens=6,columns=11";
  result.inputs = {
      {.name = "x", .shape = {6, 11}},
      {.name = "samples", .role = Role::int64, .shape = {2}, .integers = {4, 70000000000}},
      {.name = "places", .role = Role::int32, .shape = {3}, .integers = {0, 5, 6}}};
  result.batch = [](Batch& batch, Inputs& in) {
    batch.num_sequences = 2;
    batch.length = 3;
    batch.samples = in.tensor("samples");
    batch.places = in.tensor("places");
  };
  result.forward = [](Context& context, Inputs& in) -> Outputs {
    return {{"y", jitter(context, in.value("x"), 0.25f, 5)}};
  };
  result.tolerance = {{DType::fp32, 1e-6}, {DType::bf16, 4e-3}, {DType::fp16, 5e-4}};
  return result;
}
const bool kJitter = register_op_tests("jitter", {jitter_case()});

}  // namespace
}  // namespace bloomery::testing
