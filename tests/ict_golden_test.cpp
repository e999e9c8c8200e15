// Retrievers against PyTorch in fp64: vectors, loss, accuracies and all gradients, for the models
// of tools/golden/ict.py.
#include <nlohmann/json.hpp>

#include "golden_model.h"
#include "harness/golden_errors.h"
#include "models/family.h"
#include "models/ict.h"
#include "samples/ict_dataset.h"
#include "samples/padded_dataset.h"
#include "samples/tasks/question_sample.h"

namespace bloomery::testing {
namespace {

ModelOptions model_options(const nlohmann::json& c) {
  ModelOptions o;
  o.family = "ict";
  find_family("ict").defaults(o);
  o.attention.dropout = o.residual.dropout = 0;
  o.num_layers = c.at("layers");
  o.hidden_size = c.at("hidden");
  o.attention.num_heads = c.at("heads");
  o.mlp.ffn = c.at("ffn");
  o.mlp.kind = c.at("activation") == "tanh" ? MlpKind::gelu_tanh : MlpKind::gelu_erf;
  o.vocabulary.size = c.at("vocabulary");
  o.vocabulary.divisible_by = 16;
  o.positions.max_length = c.at("max_positions");
  o.norm.epsilon = c.at("epsilon");
  o.residual.after_norm = c.at("after_norm");
  IctOptions& own = o.own<IctOptions>();
  own.shared = c.at("shared");
  own.projection = c.at("projection");
  own.score_scaling = c.at("scaled");
  own.topk = c.at("topk").get<std::vector<std::int64_t>>();
  return o;
}

class IctGolden : public ::testing::TestWithParam<const char*> {};

void check_vectors(const SafetensorsFile& file, Rank& rank, const HostBatch& host,
                   double tolerance) {
  const Batch batch = rank.upload(host);
  Context context = rank.context(batch, nullptr);
  context.training = false;
  const State state = rank.model().forward(context);
  for (const auto& [name, found] :
       {std::pair{"queries", state.stream}, {"contexts", state.encoder}}) {
    const std::vector<double> expected = stored<double>(file, name);
    std::vector<double> difference = on_host(found.data, rank.stream());
    ASSERT_EQ(difference.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      difference[i] -= expected[i];
    }
    EXPECT_LE(norm_of(difference), tolerance * norm_of(expected)) << name;
  }
}

void check_against_torch(const std::string& model, DeviceKind device, DType dtype, double tolerance,
                         double element) {
  const SafetensorsFile file(repository_root() + "/tests/golden/ict_" + model + ".safetensors");
  const auto config = nlohmann::json::parse(file.metadata().at("config"));
  RankOptions options;
  options.model = model_options(config);
  options.dtype = dtype;
  options.device = {.kind = device, .num_threads = 2, .poison = true};
  Rank rank(options);
  for (Parameter* parameter : rank.model().parameters()) {
    load_stored(file, *parameter, rank.stream());
  }
  const auto length = config.at("length").get<std::int64_t>();
  const std::int64_t contexts = config.value("contexts", 1);
  const SampleFields fields = contexts > 1 ? question_fields(length, contexts)
                                           : padded_fields(ict_fields({.seq_length = length}));
  const HostBatch host = stored_batch(file, "batch.", fields, config.at("sequences"), 0);
  const double loss = stored<double>(file, "loss").at(0);
  EXPECT_NEAR(rank.accumulate(std::span(&host, 1)), loss, tolerance * loss);
  // That of a bias which all contexts share is zero but for the rounding of large ones.
  check_gradients(file, rank, tolerance, element, 1e-7);

  const Rank::Losses told = rank.evaluate({1, [&](std::int64_t) { return rank.upload(host); }});
  const std::vector<double> accuracies = stored<double>(file, "accuracies");
  ASSERT_EQ(told.size(), accuracies.size() + 1);
  EXPECT_EQ(told[0].name, contexts > 1 ? "lm loss" : "loss");
  for (std::size_t i = 0; i < accuracies.size(); ++i) {
    EXPECT_EQ(told[i + 1].name, contexts > 1
                                    ? "correct_prediction_count"
                                    : concat("top", config.at("topk")[i].get<int>(), "_acc"));
    EXPECT_NEAR(told[i + 1].value, accuracies[i], 1e-3);
  }
  if (contexts > 1) {
    const std::vector<std::int32_t> ranks = stored<std::int32_t>(file, "ranks");
    EXPECT_EQ(rank.answers({1, [&](std::int64_t) { return rank.upload(host); }}),
              std::vector<float>(ranks.begin(), ranks.end()));
  }
  check_vectors(file, rank, host, tolerance);
}

TEST_P(IctGolden, EqualsTorchInFp64) {
  check_against_torch(GetParam(), DeviceKind::cpu, DType::fp64, 1e-7,
                      1e-6);  // the scales of scores are fp32
}

TEST_P(IctGolden, EqualsTorchInFp32OnCpu) {
  check_against_torch(GetParam(), DeviceKind::cpu, DType::fp32, 1e-5, 1e-5);
}

TEST_P(IctGolden, EqualsTorchInFp32OnCuda) {
  if (num_cuda_devices() == 0) {
    GTEST_SKIP() << "no GPU on this machine";
  }
  check_against_torch(GetParam(), DeviceKind::cuda, DType::fp32, 1e-4, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Models, IctGolden,
                         ::testing::Values("two_towers", "shared", "original", "questions"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace bloomery::testing
