// Retrievers under layouts: data-parallel ranks train like one rank that has their micro-batches
// joined, since each query looks for its context among those of all ranks; tensor-parallel ones
// like one rank.
#include <gtest/gtest.h>

#include "models/family.h"
#include "models/ict.h"
#include "samples/sample_kind.h"
#include "samples/tasks/question_sample.h"
#include "train/parity/layout_text.h"
#include "train/parity/parity.h"
#include "train/step/batch_upload.h"

namespace bloomery::testing {
namespace {

RankOptions retriever(bool shared) {
  RankOptions o;
  o.model.family = "ict";
  find_family("ict").defaults(o.model);
  IctOptions& own = o.model.own<IctOptions>();
  own.shared = shared;
  own.projection = shared ? 0 : 24;
  own.score_scaling = !shared;
  own.topk = {1, 3};
  o.model.num_layers = 2;
  o.model.hidden_size = 32;
  o.model.attention.num_heads = 4;
  o.model.vocabulary.size = 93;
  o.model.vocabulary.divisible_by = 8;
  o.model.positions.max_length = 32;
  o.model.init.std = 0.1;
  o.device = {.num_threads = 1, .poison = true};
  o.optimizer.schedule.learning_rate = 1e-3;
  o.optimizer.schedule.decay_style = DecayStyle::constant;
  o.optimizer.schedule.weight_decay = 0.1;
  return o;
}

struct Runs {
  ParityRun adam, sgd;
};

// Two micro-batches of a step, of 8 pairs each in all, or of 8 samples of `fields`.
Runs train(RankOptions options, const SampleFields& fields) {
  const int ranks = options.layout.degrees.data;
  ParityWork work{.micro_batches = 2 * ranks,
                  .sequences = 8 / ranks,
                  .length = 16,
                  .vocabulary = 93,
                  .steps = 3,
                  .fields = fields,
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

// Scores that all change by the same number change no loss: what adds the same to all contexts of a
// tower of their own has a gradient of zero, but for rounding, which no two layouts share.
ParityRun without_zero_gradients(ParityRun run) {
  for (ParityStep& step : run) {
    for (const char* name : {"context.final_norm.bias", "context.projection.bias"}) {
      for (const float number :
           step.gradients.contains(name) ? step.gradients.at(name) : std::vector<float>()) {
        EXPECT_LE(std::abs(number), 1e-6 * step.grad_norm) << name;
      }
      step.gradients.erase(name);
      step.weights.erase(name);
    }
  }
  return run;
}

void check_layouts(bool shared, const SampleFields& fields = {}) {
  using Method = RecomputeOptions::Method;
  const RankOptions options = retriever(shared);
  const Runs reference = train(options, fields);
  const ParityRun expected = without_zero_gradients(reference.sgd);
  struct Case {
    const char* layout;
    Method recompute = Method::none;
  };
  for (const Case& each :
       {Case{"dp2"}, Case{"dp4z1"}, Case{"dp2z2"}, Case{"dp2z3"}, Case{"dp2z3", Method::uniform},
        Case{"tp2"}, Case{"tp2sp"}, Case{"tp2sp+dp2z1"}, Case{"1", Method::block}}) {
    RankOptions divided = options;
    divided.layout = parse_layout(each.layout);
    divided.recompute.method = each.recompute;
    SCOPED_TRACE(each.layout);
    const Runs runs = train(divided, fields);
    EXPECT_EQ(first_outside(compare(without_zero_gradients(runs.sgd), expected), 1e-5), "");
    EXPECT_EQ(first_outside(compare(runs.adam, reference.adam), 1e-5), "");
  }
}

TEST(IctLayouts, TwoTowersTrainLikeOneRank) { check_layouts(false); }

TEST(IctLayouts, ASharedTowerTrainsLikeOneRank) { check_layouts(true); }

// Questions with three passages each, of which half are missing by chance, be it the one to find.
TEST(IctLayouts, QuestionsTrainLikeOneRank) {
  check_layouts(false, question_fields(16, 3));
  check_layouts(true, question_fields(16, 3));
}

// The masks of a query and of its context would be the same where places are, if nothing told the
// towers apart: then a shared tower would find texts by what was dropped.
TEST(IctLayouts, TowersDropDifferentNumbers) {
  RankOptions options = retriever(true);
  options.training = true;
  Rank rank(options);
  SampleFields fields = find_sample_kind("ict").fields({.data = {.seq_length = 16}});
  HostBatch host = random_batch(fields, 4, 93, 1, 0);
  std::ranges::copy(host.array<std::int32_t>("tokens"),
                    host.array<std::int32_t>("encoder.tokens").begin());
  std::ranges::copy(host.array<std::int32_t>("key_end"),
                    host.array<std::int32_t>("encoder.key_end").begin());
  const Batch batch = rank.upload(host);
  Context context = rank.context(batch, nullptr);
  for (const bool training : {false, true}) {
    context.training = training;
    const State state = rank.model().forward(context);
    EXPECT_EQ(state.stream.data.to_host<float>(rank.stream()) ==
                  state.encoder.data.to_host<float>(rank.stream()),
              !training);
  }
}

}  // namespace
}  // namespace bloomery::testing
