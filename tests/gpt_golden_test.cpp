// GPT against PyTorch in fp64: logits, loss, all gradients, and 50 AdamW steps, for the models of
// tools/golden/gpt.py.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "build_config.h"
#include "golden_model.h"
#include "harness/golden_errors.h"
#include "samples/language_model_dataset.h"

namespace bloomery::testing {
namespace {

MlpKind mlp_kind(const std::string& activation, bool gated) {
  const std::map<std::string, std::pair<MlpKind, MlpKind>> kinds = {
      {"gelu_tanh", {MlpKind::gelu_tanh, MlpKind::geglu_tanh}},
      {"gelu_erf", {MlpKind::gelu_erf, MlpKind::geglu_erf}},
      {"silu", {MlpKind::silu, MlpKind::swiglu}},
      {"relu", {MlpKind::relu, MlpKind::reglu}},
      {"squared_relu", {MlpKind::squared_relu, MlpKind::squared_relu}}};
  return gated ? kinds.at(activation).second : kinds.at(activation).first;
}

// Without random numbers.
MoeOptions moe_options(const nlohmann::json& c) {
  MoeOptions o;
  o.num_experts = c.at("experts").get<std::vector<std::int64_t>>();
  o.interval = c.at("interval");
  o.topk = c.at("topk");
  o.ffn = c.at("ffn");
  o.shared_ffn = c.at("shared_ffn");
  o.kind = c.at("residual") ? MoeKind::residual : MoeKind::standard;
  o.train_capacity = c.at("capacity");
  o.min_capacity = c.at("least");
  o.loss_coefficient = c.at("balance");
  o.z_coefficient = c.at("z");
  o.random_selection = o.sample_second = false;
  return o;
}

ModelOptions model_options(const nlohmann::json& c) {
  ModelOptions o;
  o.num_layers = c.at("layers");
  o.hidden_size = c.at("hidden");
  o.attention.num_heads = c.at("heads");
  o.attention.num_groups = c.at("groups");
  o.mlp.ffn = c.at("ffn");
  o.vocabulary.size = c.at("vocabulary");
  o.vocabulary.divisible_by = 16;  // so that there are padded columns to mask
  o.positions.max_length = c.at("max_positions");
  o.norm.kind = c.at("norm") == "rms" ? NormKind::rms : NormKind::layer;
  o.norm.epsilon = c.at("epsilon");
  o.norm.one_plus_gain = c.at("one_plus_gain");
  o.mlp.kind = mlp_kind(c.at("activation"), c.at("gated"));
  o.bias = c.at("bias");
  o.vocabulary.untied = !c.at("tied").get<bool>();
  o.positions.rotary = c.at("positions") == "rotary";
  o.positions.rotary_fraction = c.at("rotary_fraction");
  o.positions.rotary_base = c.at("rotary_base");
  o.positions.rotary_interleaved = c.at("rotary_interleaved");
  o.residual.after_norm = c.at("post_norm_residual");
  if (const auto found = c.find("moe"); found != c.end() && !found->is_null()) {
    o.moe = moe_options(*found);
  }
  return o;
}

HostBatch golden_batch(const SafetensorsFile& file, const std::string& stem,
                       const nlohmann::json& c, std::int64_t index) {
  return stored_batch(
      file, stem,
      language_model_fields(c.at("length"), {.reset_position_ids = true,
                                             .reset_attention_mask = c.at("documents"),
                                             .eod_mask_loss = true}),
      c.at("sequences"), index);
}

struct Golden {
  explicit Golden(const std::string& model)
      : file(repository_root() + "/tests/golden/gpt_" + model + ".safetensors"),
        config(nlohmann::json::parse(file.metadata().at("config"))) {}

  std::unique_ptr<Rank> rank(DeviceKind device, DType dtype) const {
    RankOptions options;
    options.model = model_options(config);
    options.dtype = dtype;
    options.device = {.kind = device, .num_threads = 2, .poison = true};
    options.optimizer.rule = Adam{.beta2 = 0.95};
    options.optimizer.schedule.learning_rate = 3e-3;
    options.optimizer.schedule.decay_style = DecayStyle::constant;
    options.optimizer.schedule.weight_decay = 0.1;
    auto made = std::make_unique<Rank>(options);
    for (Parameter* parameter : made->model().parameters()) {
      load_stored(file, *parameter, made->stream());
    }
    return made;
  }

  SafetensorsFile file;
  nlohmann::json config;
};

class GptGolden : public ::testing::TestWithParam<const char*> {};

void check_against_torch(const std::string& model, DeviceKind device, DType dtype, double tolerance,
                         double element) {
  const Golden golden(model);
  const auto rank = golden.rank(device, dtype);
  const HostBatch host = golden_batch(golden.file, "batch.", golden.config, 0);

  const double loss = rank->accumulate(std::span(&host, 1));
  const double expected_loss = stored<double>(golden.file, "loss").at(0);
  EXPECT_NEAR(loss, expected_loss, tolerance * expected_loss);
  check_gradients(golden.file, *rank, tolerance, element);

  Batch batch = rank->upload(host);
  batch.labels = {};
  Context context = rank->context(batch, nullptr);
  const Value logits = rank->model().forward(context).stream;
  const std::vector<double> expected = stored<double>(golden.file, "logits");
  const std::vector<double> difference =
      differences(on_host(logits.data, rank->stream()), expected, golden.config.at("vocabulary"));
  EXPECT_LE(norm_of(difference), tolerance * norm_of(expected));
}

TEST_P(GptGolden, EqualsTorchInFp64) {
  check_against_torch(GetParam(), DeviceKind::cpu, DType::fp64, 1e-7,
                      1e-6);  // the score scale is fp32
}

TEST_P(GptGolden, EqualsTorchInFp32OnCpu) {
  check_against_torch(GetParam(), DeviceKind::cpu, DType::fp32, 1e-5, 1e-5);
}

TEST_P(GptGolden, EqualsTorchInFp32OnCuda) {
  if (num_cuda_devices() == 0) {
    GTEST_SKIP() << "no GPU on this machine";
  }
  check_against_torch(GetParam(), DeviceKind::cuda, DType::fp32, 1e-4, 1e-3);
}

void check_training(const std::string& model, DeviceKind device) {
  const Golden golden(model);
  const auto rank = golden.rank(device, DType::fp32);
  const std::vector<double> losses = stored<double>(golden.file, "losses");
  const std::vector<double> norms = stored<double>(golden.file, "norms");
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const HostBatch host =
        golden_batch(golden.file, "steps.", golden.config, static_cast<std::int64_t>(i));
    const Rank::Result result = rank->step(std::span(&host, 1));
    EXPECT_NEAR(result.loss, losses[i], 1e-5 * losses[i]) << "step " << i;
    EXPECT_NEAR(result.grad_norm, norms[i], 1e-3 * norms[i]) << "step " << i;
  }
}

TEST_P(GptGolden, FollowsTorchOver50StepsOnCpu) { check_training(GetParam(), DeviceKind::cpu); }

TEST_P(GptGolden, FollowsTorchOver50StepsOnCuda) {
  if (num_cuda_devices() == 0) {
    GTEST_SKIP() << "no GPU on this machine";
  }
  check_training(GetParam(), DeviceKind::cuda);
}

INSTANTIATE_TEST_SUITE_P(Models, GptGolden,
                         ::testing::Values("gpt2", "llama", "neox_like", "interleaved", "post_norm",
                                           "geglu_gqa", "documents", "moe_top1", "moe_residual",
                                           "moe_shared"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace bloomery::testing
