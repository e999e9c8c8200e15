// Mixtures of experts train under every layout like on one rank, random numbers, capacity and
// balance loss included: gradients and weights tensor by tensor after a step of plain SGD, losses
// and gradient norms over ten steps of Adam.
#include <gtest/gtest.h>

#include "models/family.h"
#include "train/parity/layout_text.h"
#include "train/parity/parity.h"

namespace bloomery::testing {
namespace {

struct Mixture {
  const char* name;
  const char* family;
  MoeOptions moe;
  const char* layouts;
};

std::vector<Mixture> mixtures() {
  return {
      {"top-1 with capacity, drawn",
       "gpt",
       {.num_experts = {4}, .train_capacity = 0.75, .z_coefficient = 0.01},
       "tp2,tp2sp,tp4,pp2,pp2zb,pp2v2,ul2,dp2,dp2z1,dp2z2,dp2z3,dp2ep2,dp4ep2z1,dp4ep4z3,"
       "tp2+dp2ep2,tp2sp+dp2ep2z2,pp2+dp2ep2z1,ul2+dp2ep2"},
      {"PR-MoE of two choices, the second drawn",
       "gpt",
       {.num_experts = {2, 4, 4, 2},
        .interval = 1,
        .kind = MoeKind::residual,
        .topk = 2,
        .train_capacity = 0.75,
        .jitter = 0.01},
       "tp2sp,pp4,ul2+pp2,dp2z3,dp2ep2z1,tp2sp+dp2ep2,pp2v2+dp2ep2z2"},
      {"three choices of small experts beside a shared one",
       "llama",
       {.num_experts = {6},
        .interval = 1,
        .dense_layers = {2},
        .ffn = 16,
        .shared_ffn = 24,
        .topk = 3,
        .renormalise = false,
        .drop_tokens = false},
       "tp2,tp2sp+pp2,ul2,cp2+dp2ep2,dp2z1,dp2ep2,dp4ep2z3"},
  };
}

RankOptions options_of(const Mixture& mixture) {
  RankOptions o;
  o.model.family = mixture.family;
  if (const auto defaults = find_family(o.model.family).defaults) {
    defaults(o.model);
  }
  o.model.num_layers = 4;
  o.model.hidden_size = 32;
  o.model.attention.num_heads = 8;
  o.model.vocabulary.size = 93;
  o.model.vocabulary.divisible_by = 8;
  o.model.positions.max_length = 32;
  o.model.attention.dropout = o.model.residual.dropout = 0.1f;
  o.model.init.std = 0.1;
  o.model.moe = mixture.moe;
  o.device = {.num_threads = 1, .poison = true};
  o.optimizer.schedule.learning_rate = 1e-3;
  o.optimizer.schedule.decay_style = DecayStyle::constant;
  o.optimizer.schedule.weight_decay = 0.1;
  return o;
}

struct Runs {
  ParityRun adam, sgd;
};

Runs train(RankOptions options) {
  ParityWork work{.micro_batches = 8,
                  .sequences = 2,
                  .length = 16,
                  .vocabulary = 93,
                  .steps = 10,
                  .tensors = false};
  Runs runs;
  runs.adam = run_steps(options, work);
  options.optimizer.rule = Momentum{.momentum = 0};
  options.optimizer.schedule.learning_rate = 0.1;
  work.steps = 1;
  work.tensors = true;
  runs.sgd = run_steps(options, work);
  return runs;
}

TEST(MoeLayouts, EveryLayoutTrainsLikeOneRank) {
  for (const Mixture& mixture : mixtures()) {
    RankOptions options = options_of(mixture);
    const Runs reference = train(options);
    for (const Layout& layout : parse_layouts(mixture.layouts)) {
      SCOPED_TRACE(concat(mixture.name, ": ", to_text(layout)));
      options.layout = layout;
      const Runs runs = train(options);
      EXPECT_EQ(first_outside(compare(runs.sgd, reference.sgd), 1e-5), "");
      EXPECT_EQ(first_outside(compare(runs.adam, reference.adam), 1e-5), "");
    }
  }
}

TEST(MoeLayouts, RecomputationAndRepetitionGiveTheSameBits) {
  for (const Mixture& mixture : mixtures()) {
    RankOptions options = options_of(mixture);
    options.layout = parse_layout("tp2sp+dp2ep2z1");
    const Runs a = train(options), b = train(options);
    EXPECT_EQ(first_outside(compare(a.adam, b.adam), 0), "") << mixture.name;
    options.recompute.method = RecomputeOptions::Method::uniform;
    EXPECT_EQ(first_outside(compare(train(options).adam, a.adam), 0), "") << mixture.name;
  }
}

}  // namespace
}  // namespace bloomery::testing
