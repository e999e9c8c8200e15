// Adapters in training: what is frozen, what it costs, and that layouts train them alike.
#include <gtest/gtest.h>

#include "models/family.h"
#include "nn/adapter.h"
#include "train/parity/layout_text.h"
#include "train/parity/parity.h"
#include "train/plan/state_memory.h"

namespace bloomery::testing {
namespace {

RankOptions tiny(const char* family, std::vector<std::string> targets, float dropout = 0) {
  RankOptions options;
  options.model.family = family;
  find_family(family).defaults(options.model);
  options.model.num_layers = 4;
  options.model.hidden_size = 32;
  options.model.attention.num_heads = 4;
  options.model.attention.num_groups = family == std::string_view("llama") ? 2 : 4;
  options.model.mlp.ffn = 64;
  options.model.vocabulary.size = 64;
  options.model.vocabulary.divisible_by = 8;
  options.model.positions.max_length = 32;
  options.model.init.std = 0.1;
  options.model.adapter = {
      .enabled = true, .rank = 3, .alpha = 6, .dropout = dropout, .targets = std::move(targets)};
  options.device = {.num_threads = 1, .poison = true};
  options.optimizer.rule = Momentum{};
  options.optimizer.schedule.learning_rate = 0.1;
  options.optimizer.schedule.decay_style = DecayStyle::constant;
  return options;
}

// Three steps: the first factors learn from the second on, since the second ones start at zero.
constexpr ParityWork kWork{.steps = 3};

void expect_alike(RankOptions options, std::initializer_list<const char*> layouts) {
  options.layout = {};
  const ParityRun one = run_steps(options, kWork);
  for (const char* layout : layouts) {
    options.layout = parse_layout(layout);
    const ParityRun several = run_steps(options, kWork);
    EXPECT_EQ(first_outside(compare(several, one), 2e-4), "") << layout;
  }
}

TEST(Adapters, LayoutsTrainThemAlike) {
  expect_alike(
      tiny("llama",
           {"attention.qkv.0", "attention.qkv.2", "attention.projection", "mlp.up.1", "mlp.down"},
           0.2f),
      {"tp2", "tp2sp+dp2z1", "pp2zb+dp2z2", "tp2sp+pp2v2", "dp2z3", "ul2", "cp2"});
  RankOptions gpt = tiny("gpt", {"*"}, 0.1f);
  gpt.model.attention.dropout = gpt.model.residual.dropout = 0.1f;
  gpt.recompute = {RecomputeOptions::Method::uniform, 2};
  expect_alike(gpt, {"tp2sp+pp2zb", "tp4", "dp2z3"});
}

TEST(Adapters, OnlyTheyAreTrained) {
  RankOptions options = tiny("gpt", {"attention.qkv", "blocks.1.mlp.down"});
  Rank rank(options);
  std::int64_t trained = 0;
  for (const Parameter* parameter : rank.parameters()) {
    EXPECT_EQ(parameter->frozen, !is_adapter_parameter(parameter->name)) << parameter->name;
    EXPECT_EQ(static_cast<bool>(parameter->grad), !parameter->frozen) << parameter->name;
    trained += parameter->frozen ? 0 : parameter->local_shape.numel();
  }
  EXPECT_EQ(trained, 4 * (3 * 32 + 96 * 3) + (3 * 64 + 32 * 3));
  // In units of 128 elements: what is frozen has neither gradients nor moments.
  const StateMemory state = allocated_state(rank);
  EXPECT_LE(state.gradients, 4 * (trained + 128 * 10));
  EXPECT_LE(state.optimizer, 4 * (trained + 128 * 10));
}

// As they start, adapters change nothing, to the bit.
TEST(Adapters, StartAsNothing) {
  RankOptions options = tiny("llama", {"*"});
  ParityWork work = kWork;
  work.steps = 1;
  const double with = run_steps(options, work).front().loss;
  options.model.adapter = {};
  EXPECT_EQ(run_steps(options, work).front().loss, with);
}

// What backward keeps: no inputs of frozen products but those of adapters.
TEST(Adapters, KeepLessThanFullTraining) {
  const auto kept = [](const RankOptions& options) {
    Rank rank(options);
    rank.runner().executor().tape_report.emplace();
    const HostBatch batch = random_batch(2, 16, 64, 7, 0);
    rank.accumulate(std::span(&batch, 1));
    return rank.runner().executor().tape_report->saved_bytes;
  };
  RankOptions options = tiny("llama", {"attention.qkv.0"});
  const std::size_t adapters = kept(options);
  options.model.adapter = {};
  EXPECT_LT(adapters, kept(options));
}

}  // namespace
}  // namespace bloomery::testing
