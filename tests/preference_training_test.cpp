// Models that are tuned on preferences train under every layout like on one rank, and start where
// their reference is.
#include <gtest/gtest.h>

#include <cmath>

#include "models/family.h"
#include "samples/instruct/instruct_dataset.h"
#include "train/parity/layout_text.h"
#include "train/parity/parity.h"

namespace bloomery::testing {
namespace {

constexpr std::int64_t kVocabulary = 93;

RankOptions options_of(const char* family) {
  RankOptions o;
  ModelOptions& model = o.model;
  model.family = family;
  if (const auto defaults = find_family(family).defaults) {
    defaults(model);
  }
  model.num_layers = 4;
  model.hidden_size = 32;
  model.attention.num_heads = 8;
  model.vocabulary.size = kVocabulary;
  model.vocabulary.divisible_by = 8;
  model.positions.max_length = 32;
  model.attention.dropout = model.residual.dropout = 0.1f;
  model.init.std = 0.1;
  o.preference = PreferenceOptions{.beta = 0.2, .label_smoothing = 0.1};
  o.device = {.num_threads = 1, .poison = true};
  o.optimizer.rule = Momentum{.momentum = 0};
  o.optimizer.schedule.learning_rate = 0.1;
  o.optimizer.schedule.decay_style = DecayStyle::constant;
  return o;
}

ParityRun train(const RankOptions& options) {
  return run_steps(options,
                   {.micro_batches = 4, .vocabulary = kVocabulary, .steps = 2, .pairs = true});
}

TEST(PreferenceTraining, EveryLayoutTrainsLikeOneRank) {
  struct Case {
    const char *family, *layouts;
    PreferenceLoss loss;
  };
  for (const Case& each : {Case{"gpt", "tp2,tp2sp,ul2,cp2,pp2,pp2v2,dp2,dp2z3,tp2sp+pp2+dp2z1",
                                PreferenceLoss::sigmoid},
                           Case{"llama", "tp2,pp2,cp2,dp2z2", PreferenceLoss::ipo}}) {
    RankOptions options = options_of(each.family);
    options.preference->loss = each.loss;
    options.preference->label_smoothing = each.loss == PreferenceLoss::ipo ? 0 : 0.1;
    const ParityRun reference = train(options);
    for (const Layout& layout : parse_layouts(each.layouts)) {
      SCOPED_TRACE(concat(each.family, ": ", to_text(layout)));
      options.layout = layout;
      EXPECT_EQ(first_outside(compare(train(options), reference), 1e-5), "");
    }
  }
}

// What a rank says of the answers is what it is then compared with: nothing was learnt yet.
TEST(PreferenceTraining, BeginsAtLogTwo) {
  RankOptions options = options_of("gpt");
  options.preference = PreferenceOptions{};
  options.training = false;
  Rank rank(options);
  HostBatch pairs = random_batch(instruct_fields(16, Arrangement::pairs), 3, kVocabulary, 7, 0);
  const auto batch = [&](std::int64_t) { return rank.upload(pairs); };
  const Rank::AnswerLogps found = rank.answer_logps({1, batch});
  EXPECT_EQ(found.answers, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
  pairs.set("reference", found.logps);
  const std::vector<HostBatch> batches = {pairs};
  rank.step(batches);
  const Rank::Losses losses = rank.outcome(0).losses;
  ASSERT_EQ(losses.size(), 7u);
  EXPECT_EQ(losses[0].name, "dpo loss");
  EXPECT_EQ(losses[0].value, static_cast<double>(std::log(2.0f)));
  EXPECT_EQ(losses[4].name, "rewards/margins");
  EXPECT_EQ(losses[4].value, 0);
  EXPECT_EQ(losses[5].name, "logps/chosen");
  EXPECT_NEAR(losses[5].value, (found.logps[0] + found.logps[2] + found.logps[4]) / 3, 1e-4);
  const Rank::Losses after = rank.evaluate({1, batch});
  EXPECT_LT(after[0].value, losses[0].value);
  EXPECT_GT(after[4].value, 0) << "the margin of what was learnt";
}

}  // namespace
}  // namespace bloomery::testing
