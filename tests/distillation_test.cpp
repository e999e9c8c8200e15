// Students that learn from a teacher train under every layout like on one rank, and what the
// teacher adds is what it should be.
#include <gtest/gtest.h>

#include "models/family.h"
#include "train/parity/layout_text.h"
#include "train/parity/parity.h"
#include "train/step/teacher.h"

namespace bloomery::testing {
namespace {

constexpr std::int64_t kVocabulary = 93;

ModelOptions model_of(const char* family, std::int64_t layers, std::int64_t hidden) {
  ModelOptions model;
  model.family = family;
  if (const auto defaults = find_family(family).defaults) {
    defaults(model);
  }
  model.num_layers = layers;
  model.hidden_size = hidden;
  model.attention.num_heads = 8;
  model.vocabulary.size = kVocabulary;
  model.vocabulary.divisible_by = 8;
  model.positions.max_length = 32;
  model.attention.dropout = model.residual.dropout = 0.1f;
  model.init.std = 0.1;
  return model;
}

struct Pair {
  const char* name;
  ModelOptions student;
  TeacherOptions teacher;
  const char* layouts;
};

std::vector<Pair> pairs() {
  std::vector<Pair> all = {
      {"a wider and deeper GPT",
       model_of("gpt", 2, 32),
       {.model = model_of("gpt", 3, 48), .weight = 0.7, .temperature = 2},
       "tp2,tp2sp,tp4,ul2,cp2,dp2,dp2z1,dp2z2,dp2z3,tp2sp+dp2z3"},
      {"a Llama for a GPT of experts",
       model_of("gpt", 2, 32),
       {.model = model_of("llama", 2, 32)},
       "tp2,ul2,dp2z3,dp2ep2,tp2sp+dp2ep2z1"},
      {"T5",
       model_of("t5", 2, 32),
       {.model = model_of("t5", 3, 32), .temperature = 1.5},
       "tp2,tp2sp,dp2z3"},
  };
  all[1].student.moe = {.num_experts = {4}, .interval = 1, .topk = 2};
  all[1].teacher.model.moe = {.num_experts = {2}, .drop_tokens = false};
  return all;
}

RankOptions options_of(const Pair& pair) {
  RankOptions o;
  o.model = pair.student;
  o.teacher = pair.teacher;
  o.device = {.num_threads = 1, .poison = true};
  o.optimizer.schedule.learning_rate = 1e-3;
  o.optimizer.schedule.decay_style = DecayStyle::constant;
  return o;
}

ParityRun train(RankOptions options) {
  options.optimizer.rule = Momentum{.momentum = 0};
  options.optimizer.schedule.learning_rate = 0.1;
  return run_steps(options, {.micro_batches = 4, .vocabulary = kVocabulary, .steps = 2});
}

TEST(Distillation, EveryLayoutTrainsLikeOneRank) {
  for (const Pair& pair : pairs()) {
    RankOptions options = options_of(pair);
    const ParityRun reference = train(options);
    options.teacher.reset();
    EXPECT_NE(first_outside(compare(train(options), reference), 0.01), "")
        << pair.name << " teaches nothing";
    options.teacher = pair.teacher;
    for (const Layout& layout : parse_layouts(pair.layouts)) {
      SCOPED_TRACE(concat(pair.name, ": ", to_text(layout)));
      options.layout = layout;
      EXPECT_EQ(first_outside(compare(train(options), reference), 1e-5), "");
    }
  }
}

Rank::Losses losses_of_a_step(Rank& rank, bool taught = true) {
  const HostBatch host = random_batch(2, 16, kVocabulary, 7, 0);
  rank.enqueue_gradients({.num_micro_batches = 1,
                          .batch = [&](std::int64_t) { return rank.upload(host); },
                          .taught = taught});
  rank.enqueue_reduction();
  rank.enqueue_update(2);
  return rank.outcome(0).losses;
}

double value(const Rank::Losses& losses, const std::string& name) {
  for (const NamedLoss& loss : losses) {
    if (loss.name == name) {
      return loss.value;
    }
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

TEST(Distillation, LossesAreToldAsMegatronDoes) {
  RankOptions options = options_of(pairs()[1]);
  options.teacher->loss_name = "mos loss";
  Rank rank(options);
  const Rank::Losses losses = losses_of_a_step(rank);
  ASSERT_GE(losses.size(), 4u);
  EXPECT_EQ(losses[0].name, "total loss");
  EXPECT_EQ(losses[1].name, "lm loss");
  EXPECT_EQ(losses[2].name, "moe loss");
  EXPECT_EQ(losses.back().name, "mos loss");
  EXPECT_GT(losses.back().value, 0.01);
  EXPECT_NEAR(losses[0].value, losses[1].value + losses[2].value + losses.back().value, 1e-6);
  const HostBatch batch = random_batch(2, 16, kVocabulary, 7, 1);
  const Rank::Losses evaluated =
      rank.evaluate({1, [&](std::int64_t) { return rank.upload(batch); }});
  EXPECT_EQ(evaluated.front().name, "lm loss");
  EXPECT_NE(evaluated.back().name, "mos loss") << "teachers have no part in evaluations";
  EXPECT_EQ(value(losses_of_a_step(rank, false), "mos loss"), 0);
}

TEST(Distillation, AStudentThatIsItsTeacherHasNothingToLearn) {
  RankOptions options = options_of(pairs()[0]);
  options.model = options.teacher->model;
  options.model.attention.dropout = options.model.residual.dropout = 0;
  options.seed = 0;  // which a teacher starts from
  Rank rank(options);
  EXPECT_NEAR(value(losses_of_a_step(rank), "kd loss"), 0, 1e-7);
  EXPECT_GT(value(losses_of_a_step(rank), "kd loss"), 1e-5) << "one step later";
}

TEST(Distillation, TeachersHaveValuesOnlyAndMustFit) {
  RankOptions options = options_of(pairs()[0]);
  Rank rank(options);
  for (const Parameter* parameter : rank.stage().teacher()->model().parameters()) {
    EXPECT_FALSE(parameter->grad) << parameter->name;
  }
  options.teacher->model.vocabulary.size = kVocabulary + 1;
  EXPECT_THROW(Rank{options}, Error);
  options.teacher->model = model_of("bert", 2, 32);
  EXPECT_THROW(Rank{options}, Error);
  options.model = model_of("bert", 2, 32);
  EXPECT_THROW(Rank{options}, Error);
}

}  // namespace
}  // namespace bloomery::testing
