// T5 against PyTorch in fp64: logits, loss and all gradients, for the models of tools/golden/t5.py.
#include <nlohmann/json.hpp>

#include "golden_model.h"
#include "harness/golden_errors.h"
#include "models/t5.h"
#include "samples/padded_dataset.h"
#include "samples/sentence_dataset.h"

namespace bloomery::testing {
namespace {

ModelOptions model_options(const nlohmann::json& c) {
  ModelOptions o;
  o.family = "t5";
  T5Options& own = o.own<T5Options>();
  o.num_layers = c.at("encoder_layers");
  own.decoder_layers = c.at("decoder_layers");
  o.hidden_size = c.at("hidden");
  o.attention.num_heads = c.at("heads");
  o.attention.head_dim = c.at("head_dim");
  if (!c.at("scaled").get<bool>()) {
    o.attention.scale = 1;
  }
  o.mlp.ffn = c.at("ffn");
  o.mlp.kind = c.at("gated").get<bool>()      ? MlpKind::geglu_tanh
               : c.at("activation") == "relu" ? MlpKind::relu
                                              : MlpKind::gelu_tanh;
  o.vocabulary.size = c.at("vocabulary");
  o.vocabulary.divisible_by = 16;  // so that there are padded columns to mask
  o.vocabulary.untied = !c.at("tied").get<bool>();
  o.positions.relative_buckets = c.at("buckets");
  o.positions.relative_distance = c.at("distance");
  o.positions.learned = o.positions.relative_buckets == 0;
  o.positions.max_length = c.at("max_positions");
  o.norm.kind = c.at("norm") == "rms" ? NormKind::rms : NormKind::layer;
  o.norm.epsilon = c.at("epsilon");
  o.bias = c.at("bias");
  own.head_bias = c.at("head_bias");
  own.head_scale = c.at("head_scale");
  own.cross_mask = c.at("cross_mask");
  return o;
}

class T5Golden : public ::testing::TestWithParam<const char*> {};

void check_against_torch(const std::string& model, DeviceKind device, DType dtype, double tolerance,
                         double element) {
  const SafetensorsFile file(repository_root() + "/tests/golden/t5_" + model + ".safetensors");
  const auto config = nlohmann::json::parse(file.metadata().at("config"));
  RankOptions options;
  options.model = model_options(config);
  options.dtype = dtype;
  options.device = {.kind = device, .num_threads = 2, .poison = true};
  Rank rank(options);
  for (Parameter* parameter : rank.model().parameters()) {
    load_stored(file, *parameter, rank.stream());
  }
  const SampleFields fields = padded_fields(
      t5_fields({.seq_length = config.at("encoder_length").get<std::int64_t>(),
                 .decoder_seq_length = config.at("decoder_length").get<std::int64_t>()}));
  const HostBatch host = stored_batch(file, "batch.", fields, config.at("sequences"), 0);
  const double loss = stored<double>(file, "loss").at(0);
  EXPECT_NEAR(rank.accumulate(std::span(&host, 1)), loss, tolerance * loss);
  check_gradients(file, rank, tolerance, element);

  Batch batch = rank.upload(host);
  batch.labels = {};
  Context context = rank.context(batch, nullptr);
  const Tensor logits = rank.model().forward(context).stream.data;
  const std::vector<double> expected = stored<double>(file, "logits");
  EXPECT_LE(norm_of(differences(on_host(logits, rank.stream()), expected, config.at("vocabulary"))),
            tolerance * norm_of(expected));
}

TEST_P(T5Golden, EqualsTorchInFp64) {
  check_against_torch(GetParam(), DeviceKind::cpu, DType::fp64, 1e-7,
                      1e-6);  // the score scale is fp32
}

TEST_P(T5Golden, EqualsTorchInFp32OnCpu) {
  check_against_torch(GetParam(), DeviceKind::cpu, DType::fp32, 1e-5, 1e-5);
}

TEST_P(T5Golden, EqualsTorchInFp32OnCuda) {
  if (num_cuda_devices() == 0) {
    GTEST_SKIP() << "no GPU on this machine";
  }
  check_against_torch(GetParam(), DeviceKind::cuda, DType::fp32, 1e-4, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Models, T5Golden, ::testing::Values("megatron", "unmasked", "v10", "v11"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace bloomery::testing
