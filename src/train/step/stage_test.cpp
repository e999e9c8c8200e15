#include "train/step/stage.h"

#include <gtest/gtest.h>

#include <set>

#include "train/step/rank_case.h"

namespace bloomery::testing {
namespace {

TEST(Stage, HasItsPartOfTheModel) {
  std::set<std::string> whole;
  {
    const Stage stage(small_rank(), make_self_communicator());
    EXPECT_TRUE(stage.chunks().front()->is_first());
    EXPECT_TRUE(stage.chunks().front()->is_last());
    for (const Parameter* each : stage.parameters()) {
      whole.insert(each->name);
    }
  }
  RankOptions options = small_rank();
  options.layout.degrees.pipeline = 2;
  std::array<std::set<std::string>, 2> parts;
  run_ranks(2, [&](int rank, std::unique_ptr<Communicator> world) {
    Stage stage(options, std::move(world));
    ASSERT_EQ(stage.chunks().size(), 1u);
    EXPECT_EQ(stage.chunks().front()->is_first(), rank == 0);
    EXPECT_EQ(stage.chunks().front()->is_last(), rank == 1);
    for (const Parameter* each : stage.parameters()) {
      parts.at(static_cast<std::size_t>(rank)).insert(each->name);
    }
    EXPECT_EQ(stage.ties().numbers().size(), 1u) << "the table of a tied model is on both stages";
    stage.mesh().world().host().barrier("end");
  });
  std::set<std::string> together = parts[0];
  together.insert(parts[1].begin(), parts[1].end());
  EXPECT_EQ(together, whole);
  EXPECT_EQ(parts[0].size() + parts[1].size(), whole.size() + 1);
}

TEST(Stage, HasNoFeatureThatNobodyAskedFor) {
  Stage stage(small_rank(), make_self_communicator());
  const Features& features = stage.features().features();
  EXPECT_EQ(features.fp8, nullptr);
  EXPECT_EQ(features.fake_quantization, nullptr);
  EXPECT_EQ(features.token_dropping, nullptr);
  EXPECT_EQ(features.layer_dropping, nullptr);
  EXPECT_EQ(features.sequence_chunks, nullptr);
  EXPECT_EQ(features.inputs_on_host, nullptr);
  EXPECT_EQ(features.preference, nullptr);
  EXPECT_EQ(features.distillation, nullptr);
  EXPECT_FALSE(features.activations.remake_cheap_values);
  EXPECT_EQ(stage.communication_stream(), nullptr);
  EXPECT_EQ(stage.host(), nullptr);
  EXPECT_EQ(stage.files(), nullptr);
  EXPECT_EQ(stage.quantized(), nullptr);
  EXPECT_EQ(stage.teacher(), nullptr);
}

TEST(Stage, TellsLayersWhatOptionsAskFor) {
  RankOptions options = small_rank();
  options.recompute.cheap_values = true;
  options.token_dropping_layers = {1};
  options.layer_drop = LayerDropOptions{.theta = 0.5, .gamma = 0.1};
  options.sequence_chunk = 8;
  options.preference.emplace();
  options.grids["blocks.0.mlp.up.weight"];
  Stage stage(options, make_self_communicator());
  const Features& features = stage.features().features();
  EXPECT_TRUE(features.activations.remake_cheap_values);
  EXPECT_EQ(features.sequence_chunks->length, 8);
  EXPECT_NE(features.preference, nullptr);
  EXPECT_NE(features.fake_quantization, nullptr);
  stage.features().begin_pass({.completed_steps = 100, .kept_tokens = 6});
  EXPECT_EQ(features.token_dropping->kept, 6);
  EXPECT_EQ(features.layer_dropping->step, 100);
  EXPECT_DOUBLE_EQ(features.layer_dropping->theta, options.layer_drop->theta_after(100));
}

TEST(Stage, ComputesIn8BitsWith16BitValuesOnly) {
  RankOptions options = small_rank();
  options.fp8.emplace();
  EXPECT_THROW(Stage(options, make_self_communicator()), Error);
  options.dtype = DType::bf16;
  Stage stage(options, make_self_communicator());
  EXPECT_NE(stage.features().features().fp8, nullptr);
}

}  // namespace
}  // namespace bloomery::testing
