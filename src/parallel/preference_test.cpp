#include "parallel/preference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/op_harness.h"

namespace bloomery::testing {
namespace {

constexpr std::int64_t kSequences = 6, kLength = 9, kHidden = 8, kVocabulary = 37;

struct Sizes {
  PreferenceOptions options;
  std::int64_t chunk_tokens = 0;
  double grad_scale = 0;  // 0: none
  bool bias = false;
};

// The answers of unequal lengths, behind prompts and before padding.
std::vector<double> answers() {
  std::vector<double> mask;
  for (std::int64_t s = 0; s < kSequences; ++s) {
    for (std::int64_t t = 0; t < kLength; ++t) {
      mask.push_back(t >= 2 && t < 4 + s % 5 ? 1 : 0);
    }
  }
  return mask;
}

std::vector<Input> inputs(const Sizes& sizes) {
  constexpr std::int64_t kTokens = kSequences * kLength;
  std::vector<Input> all = {
      {.name = "x", .shape = {kTokens, kHidden}},
      {.name = "weight", .role = Role::parameter, .shape = {kVocabulary + 3, kHidden}},
      {.name = "labels", .role = Role::int32, .shape = {kTokens}, .limit = kVocabulary},
      {.name = "loss_mask", .role = Role::real, .shape = {kTokens}, .reals = answers()},
      {.name = "reference",
       .role = Role::real,
       .shape = {kSequences},
       .reals = {-14, -11, -20.5, -15, -9, -28}}};
  if (sizes.bias) {
    all.push_back({.name = "bias", .role = Role::parameter, .shape = {kVocabulary + 3}});
  }
  if (sizes.grad_scale > 0) {
    all.push_back(
        {.name = "grad_scale", .role = Role::real, .shape = {1}, .reals = {sizes.grad_scale}});
  }
  return all;
}

OpCase preference_case(const std::string& name, const Sizes& sizes) {
  OpCase result{.name = name, .inputs = inputs(sizes), .seed_outputs = false};
  result.batch = [sizes](Batch& batch, Inputs& in) {
    batch.num_sequences = kSequences;
    batch.length = kLength;
    batch.labels = in.tensor("labels");
    batch.loss_mask = in.tensor("loss_mask");
    batch.reference = in.tensor("reference");
    batch.grad_scale = sizes.grad_scale > 0 ? in.tensor("grad_scale") : Tensor();
  };
  result.forward = [sizes](Context& context, Inputs& in) -> Outputs {
    const PreferenceResult found =
        preference_loss(context, in.value("x"), in.parameter("weight"),
                        {.vocabulary = kVocabulary, .chunk_tokens = sizes.chunk_tokens},
                        sizes.bias ? &in.parameter("bias") : nullptr, sizes.options);
    return {{"loss", {found.figures.range(kPreferenceLoss, {1}), nullptr}},
            {"figures", {found.figures, nullptr}},
            {"logps", {found.logps, nullptr}}};
  };
  result.finite_differences = sizes.grad_scale == 0;
  // What a token weighs is known as well as how likely the answers are.
  result.tolerance = {{DType::fp32, 1e-5}, {DType::bf16, 4e-2}, {DType::fp16, 6e-3}};
  return result;
}

std::vector<OpCase> preference_cases() {
  using Loss = PreferenceLoss;
  return {
      preference_case("sigmoid", {}),
      preference_case("smoothed", {.options = {.beta = 0.3, .label_smoothing = 0.2}}),
      preference_case("robust",
                      {.options = {.loss = Loss::robust, .beta = 0.3, .label_smoothing = 0.1}}),
      preference_case("hinge", {.options = {.loss = Loss::hinge, .beta = 0.05}}),
      preference_case("ipo", {.options = {.loss = Loss::ipo, .beta = 0.4}}),
      preference_case("chunks,bias", {.chunk_tokens = 16, .grad_scale = 8, .bias = true}),
  };
}

const bool kRegistered = register_op_tests("preference_loss", preference_cases());

struct Pairs {
  std::vector<float> figures, weights;
};

// Of one pair: the log-probabilities of its answers, of two and four tokens, and of the reference.
Pairs pair_of(const PreferenceOptions& options, float chosen, float rejected,
              const std::vector<float>& reference) {
  Device device({.num_threads = 1, .poison = true});
  Stream stream(device);
  const Tensor figures = Tensor::empty(stream, DType::fp32, {kNumPreferenceFigures});
  const Tensor weights = Tensor::empty(stream, DType::fp32, {2});
  launch(stream,
         PreferencePairs{.sums = Tensor::from_host<float>(stream, {chosen, rejected, 2, 4}, {2, 2}),
                         .reference = Tensor::from_host(stream, reference, {2}),
                         .options = options,
                         .figures = figures,
                         .weights = weights});
  return {figures.to_host<float>(stream), weights.to_host<float>(stream)};
}

// By the formulas of the papers.
TEST(PreferencePairs, HaveTheLossesOfThePapers) {
  const std::vector<float> reference = {-12, -9};  // h = (-10 + 12) - (-8 + 9) = 1
  const auto loss = [&](const PreferenceOptions& options) {
    return pair_of(options, -10, -8, reference).figures[kPreferenceLoss];
  };
  const double z = 0.5, plus = std::log1p(std::exp(-z)), minus = std::log1p(std::exp(z));
  using Loss = PreferenceLoss;
  EXPECT_NEAR(loss({.beta = z}), plus, 1e-6);
  EXPECT_NEAR(loss({.beta = z, .label_smoothing = 0.1}), 0.9 * plus + 0.1 * minus, 1e-6);
  EXPECT_NEAR(loss({.loss = Loss::robust, .beta = z, .label_smoothing = 0.1}),
              (0.9 * plus - 0.1 * minus) / 0.8, 1e-6);
  EXPECT_NEAR(loss({.loss = Loss::hinge, .beta = z}), 0.5, 1e-6);
  EXPECT_EQ(loss({.loss = Loss::hinge, .beta = 2}), 0.0f);
  const double mean = (-10 + 12) / 2.0 - (-8 + 9) / 4.0;
  EXPECT_NEAR(loss({.loss = Loss::ipo, .beta = z}), (mean - 1) * (mean - 1), 1e-6);
}

TEST(PreferencePairs, BeginAtTheReference) {
  const Pairs start = pair_of({}, -10, -8, {-10, -8});
  EXPECT_EQ(start.figures, (std::vector<float>{std::log(2.0f), 0, 0, 0, 0, -10, -8}));
  EXPECT_EQ(start.weights, (std::vector<float>{0.05f, -0.05f}));
  const Pairs sure = pair_of({.beta = 10}, -1, -1e6f, {-2, -10});  // no overflow on either side
  EXPECT_EQ(sure.figures[kPreferenceLoss], 0.0f);
  EXPECT_EQ(sure.figures[kRewardAccuracy], 1.0f);
  EXPECT_EQ(pair_of({.beta = 10}, -1e6f, -1, {-10, -2}).weights, (std::vector<float>{10, -10}));
}

}  // namespace
}  // namespace bloomery::testing
