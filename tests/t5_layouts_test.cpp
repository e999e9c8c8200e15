// T5 under layouts: each trains like one rank, whose stages may be cut anywhere between encoder and
// decoder layers. Shapes are Megatron's, and Hugging Face's v1.1 with a bias by distance.
#include <gtest/gtest.h>

#include "models/family.h"
#include "models/t5.h"
#include "train/parity/layout_text.h"
#include "train/parity/parity.h"

namespace bloomery::testing {
namespace {

RankOptions megatron() {
  RankOptions o;
  o.model.family = "t5";
  find_family("t5").defaults(o.model);
  o.model.num_layers = 3;
  o.model.own<T5Options>().decoder_layers = 4;
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

RankOptions relative() {
  RankOptions o = megatron();
  T5Options& own = o.model.own<T5Options>();
  own.head_bias = false;
  own.head_scale = own.dropout_after_norm = true;
  o.model.bias = false;
  o.model.mlp = {.ffn = 64, .kind = MlpKind::geglu_tanh, .dropout = 0.1f};
  o.model.norm.kind = NormKind::rms;
  o.model.attention.scale = 1;
  o.model.positions.learned = false;
  o.model.positions.relative_buckets = 8;
  o.model.positions.relative_distance = 12;
  o.model.vocabulary.untied = true;
  return o;
}

struct Runs {
  ParityRun adam, sgd;
};

Runs train(RankOptions options) {
  const ParityWork work{.micro_batches = 4,
                        .sequences = 2,
                        .length = 16,
                        .vocabulary = 93,
                        .steps = 4,
                        .tensors = false};
  Runs runs;
  runs.adam = run_steps(options, work);
  options.optimizer.rule = Momentum{.momentum = 0};
  options.optimizer.schedule.learning_rate = 0.1;
  ParityWork one = work;
  one.steps = 1;
  one.tensors = true;
  runs.sgd = run_steps(options, one);
  return runs;
}

struct Cut {
  const char* layout;
  int decoder_stage = 0;
  RecomputeOptions::Method recompute = RecomputeOptions::Method::none;
};

void check_layouts(const RankOptions& options) {
  using Method = RecomputeOptions::Method;
  const Runs reference = train(options);
  for (const Cut& cut :
       {Cut{"tp2"}, Cut{"tp2sp"}, Cut{"pp2"}, Cut{"pp2zb"}, Cut{"dp2z1"}, Cut{"dp2z2+tp2"},
        Cut{"dp2z3"}, Cut{"pp4", 1}, Cut{"pp4gpipe", 3}, Cut{"pp4", 2, Method::uniform},
        Cut{"tp2sp+pp2+dp2z1", 1, Method::block}, Cut{"pp2+dp2z3"}, Cut{"1", 0, Method::uniform}}) {
    RankOptions divided = options;
    divided.layout = parse_layout(cut.layout);
    divided.layout.decoder_stage = cut.decoder_stage;
    divided.recompute.method = cut.recompute;
    SCOPED_TRACE(concat(cut.layout, ", decoder from stage ", cut.decoder_stage));
    const Runs runs = train(divided);
    EXPECT_EQ(first_outside(compare(runs.sgd, reference.sgd), 1e-5), "");
    EXPECT_EQ(first_outside(compare(runs.adam, reference.adam), 1e-5), "");
  }
}

TEST(T5Layouts, MegatronsFormTrainsLikeOneRank) { check_layouts(megatron()); }

TEST(T5Layouts, TheFormWithRelativeBiasTrainsLikeOneRank) { check_layouts(relative()); }

// The stages of a pipeline that does not say where the decoder begins.
TEST(T5Layouts, AreCutByTheNumbersOfLayers) {
  ModelOptions model = completed(megatron().model);
  const auto split = [&](std::int64_t encoder, std::int64_t decoder, int stages) {
    model.num_layers = encoder;
    model.own<T5Options>().decoder_layers = decoder;
    Layout layout;
    layout.degrees.pipeline = stages;
    return decoder_stage(model, layout);
  };
  EXPECT_EQ(split(12, 12, 2), 1);
  EXPECT_EQ(split(12, 12, 8), 4);
  EXPECT_EQ(split(24, 8, 4), 3);
  EXPECT_EQ(split(2, 30, 4), 1);
  EXPECT_EQ(split(30, 2, 4), 3);
  EXPECT_EQ(split(1, 3, 4), 1) << "a stage for each layer";
}

}  // namespace
}  // namespace bloomery::testing
