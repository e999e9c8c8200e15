#include "apps/bench/step_work.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "apps/bench/floor.h"
#include "models/family.h"

namespace bloomery {
namespace {

constexpr std::int64_t kLayers = 2, kHidden = 64, kHeads = 4, kVocabulary = 256;
constexpr BenchBatch kBatch{2, 32, 1};
constexpr std::int64_t kTokens = kBatch.sequences * kBatch.length;

RankOptions small(const std::string& family, DType dtype) {
  RankOptions options;
  options.model.family = family;
  if (const auto defaults = find_family(family).defaults; defaults != nullptr) {
    defaults(options.model);
  }
  options.model.num_layers = kLayers;
  options.model.hidden_size = kHidden;
  options.model.attention.num_heads = kHeads;
  options.model.attention.num_groups = family == "gpt" ? kHeads : 2;
  options.model.mlp.ffn = 128;
  options.model.vocabulary.size = kVocabulary;
  options.model.positions.max_length = kBatch.length;
  options.dtype = dtype;
  options.device.num_threads = 2;
  return options;
}

double flops_of(const StepWork& work) {
  double sum = 0;
  for (const auto& [product, row] : work.products) {
    sum += flops(product);
  }
  return sum;
}

double bytes_of(const StepWork& work, const std::string& what) {
  double sum = 0;
  for (const StepWork::Bytes& bytes : work.bytes) {
    sum += bytes.what == what ? bytes.count : 0;
  }
  return sum;
}

TEST(StepWork, IsThatOfTheModel) {
  const StepWork work = work_of_step(small("gpt", DType::fp32), kBatch);
  const double weights =
      kLayers * (4 * kHidden * kHidden + 2 * kHidden * 128) + kVocabulary * kHidden;
  EXPECT_EQ(flops_of(work), 3 * 2 * kTokens * weights);
  EXPECT_EQ(work.products.size(), 3u * (4 * kLayers + 1));
  EXPECT_EQ(work.forward.size(), 2u);
  EXPECT_EQ(work.backward.size(), 2u);
  EXPECT_EQ(work.products.front().row, (ProfileRow{"linear", "forward"}));
  EXPECT_EQ(work.forward.front().row, (ProfileRow{"attention", "forward"}));
  EXPECT_EQ(work.bytes.back().row, (ProfileRow{"adam", "optimizer"}));

  const double hidden_states = 4.0 * kTokens * kHidden, units = 128;
  const double statistics = 4.0 * kTokens * 2;
  // The first norm reads the stream and writes its result; the others add what is pending.
  EXPECT_EQ(bytes_of(work, "norms"),
            (2 + 4 * (2 * kLayers)) * hidden_states + (2 * kLayers + 1) * statistics);
  EXPECT_EQ(bytes_of(work, "loss: logits read, their gradient written"),
            2 * 4.0 * kTokens * kVocabulary);
  EXPECT_EQ(bytes_of(work, "activations: their inputs, written or read beside a product"),
            kLayers * 2 * 4.0 * kTokens * 128);
  const double parameters = bytes_of(work, "gradient norm") / 4;  // and gaps up to units
  const auto of_model =
      static_cast<double>(num_parameters(completed(small("gpt", DType::fp32).model)));
  EXPECT_GE(parameters, of_model);
  EXPECT_LE(parameters, of_model + 30 * units);
  EXPECT_EQ(bytes_of(work, "optimizer: gradients, weights, state"), 28 * parameters);
}

TEST(StepWork, FollowsWhatTheStepDoes) {
  const StepWork once = work_of_step(small("gpt", DType::bf16), kBatch);
  const StepWork twice =
      work_of_step(small("gpt", DType::bf16), {kBatch.sequences, kBatch.length, 2});
  EXPECT_EQ(twice.products.size(), 2 * once.products.size());
  const auto added = [](const StepWork& work) {
    return std::ranges::count_if(work.products, [](const auto& p) { return p.kernel.add; });
  };
  EXPECT_EQ(added(twice) - 2 * added(once), 4 * kLayers + 1);  // weight gradients
  EXPECT_EQ(bytes_of(twice, "gradient norm"), bytes_of(once, "gradient norm"));

  RankOptions recomputing = small("gpt", DType::bf16);
  recomputing.recompute.method = RecomputeOptions::Method::uniform;
  const StepWork again = work_of_step(recomputing, kBatch);
  EXPECT_EQ(again.products.size(), once.products.size() + 4 * kLayers);
  EXPECT_TRUE(std::ranges::any_of(again.products, [](const auto& p) {
    return p.row == ProfileRow{"linear", "recompute"};
  }));
}

// Every kernel accepts what it is given, and every part has its time.
TEST(Floor, MeasuresModelsOfAllKinds) {
  RankOptions in_fp8 = small("llama", DType::bf16);
  in_fp8.fp8.emplace();
  for (const RankOptions& options :
       {small("gpt", DType::fp32), small("qwen2", DType::bf16), in_fp8}) {
    const StepWork work = work_of_step(options, kBatch);
    Device device({.num_threads = 2});
    Stream stream(device);
    const Floor floor = measure_floor(stream, work, 1e-4);
    double by_row = 0;
    for (const auto& [row, seconds] : floor.by_row) {
      by_row += seconds;
    }
    EXPECT_NEAR(floor.seconds() / by_row, 1, 1e-9);
    for (const auto& parts : {floor.products, floor.attention, floor.bytes}) {
      EXPECT_FALSE(parts.empty());
      for (const Floor::Part& part : parts) {
        EXPECT_GT(part.seconds, 0) << part.what;
        EXPECT_GT(part.count, 0) << part.what;
      }
    }
    if (options.model.family != "gpt") {
      EXPECT_GT(bytes_of(work, "rotary positions"), 0);
      EXPECT_GT(bytes_of(work, "gated activations, backward"), 0);
    }
    if (options.fp8) {
      EXPECT_GT(bytes_of(work, "copies in 8 bits"), 0);
      EXPECT_TRUE(floor.products.front().what.find("e4m3") != std::string::npos)
          << floor.products.front().what;
    }
  }
}

}  // namespace
}  // namespace bloomery
