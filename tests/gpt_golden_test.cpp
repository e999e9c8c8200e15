// GPT against PyTorch in fp64: logits, loss, all gradients, and 50 AdamW steps, for the models of
// tools/golden/gpt.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "build_config.h"
#include "data/samples/language_model_dataset.h"
#include "harness/golden_errors.h"
#include "tensor/safetensors.h"
#include "train/rank.h"

namespace bloomery::testing {
namespace {

template <class T>
std::vector<T> stored(const SafetensorsFile& file, const std::string& name) {
  const auto bytes = file.bytes(name);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

MlpKind mlp_kind(const std::string& activation, bool gated) {
  const std::map<std::string, std::pair<MlpKind, MlpKind>> kinds = {
      {"gelu_tanh", {MlpKind::gelu_tanh, MlpKind::geglu_tanh}},
      {"gelu_erf", {MlpKind::gelu_erf, MlpKind::geglu_erf}},
      {"silu", {MlpKind::silu, MlpKind::swiglu}},
      {"relu", {MlpKind::relu, MlpKind::reglu}},
      {"squared_relu", {MlpKind::squared_relu, MlpKind::squared_relu}}};
  return gated ? kinds.at(activation).second : kinds.at(activation).first;
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
  return o;
}

// Rows [first, first + tokens) of the stored integer tensors.
HostBatch stored_batch(const SafetensorsFile& file, const std::string& stem,
                       const nlohmann::json& c, std::int64_t index) {
  const bool documents = c.at("documents");
  HostBatch batch(DeviceKind::cpu,
                  language_model_fields(c.at("length"), {.reset_position_ids = true,
                                                         .reset_attention_mask = documents,
                                                         .eod_mask_loss = true}),
                  c.at("sequences"));
  for (const SampleField& field : batch.fields()) {
    const auto set = [&]<class T>(std::span<T> to) {
      const std::vector<T> all = stored<T>(file, stem + std::string(field.name));
      const auto count = static_cast<std::int64_t>(to.size());
      std::copy_n(all.begin() + index * count, count, to.begin());
    };
    if (field.dtype == DType::fp32) {
      set(batch.array<float>(field.name));
    } else {
      set(batch.array<std::int32_t>(field.name));
    }
  }
  std::ranges::fill(batch.samples(), 0);
  return batch;
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
    options.optimizer.beta2 = 0.95;
    options.optimizer.schedule.learning_rate = 3e-3;
    options.optimizer.schedule.decay_style = DecayStyle::constant;
    options.optimizer.schedule.weight_decay = 0.1;
    auto made = std::make_unique<Rank>(options);
    for (Parameter* parameter : made->model().parameters()) {
      load(*parameter, made->stream());
    }
    return made;
  }

  void load(Parameter& parameter, Stream& stream) const {
    const std::vector<float> values = stored<float>(file, "weight." + parameter.name);
    dispatch_floating(parameter.value.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::vector<T> cast(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        cast[i] = T(values[i]);
      }
      stream.copy(parameter.value.data(), cast.data(), cast.size() * sizeof(T));
      stream.synchronize();
    });
  }

  SafetensorsFile file;
  nlohmann::json config;
};

std::vector<double> on_host(const Tensor& tensor, Stream& stream) {
  if (tensor.dtype() == DType::fp64) {
    return tensor.to_host<double>(stream);
  }
  const std::vector<float> values = tensor.to_host<float>(stream);
  return {values.begin(), values.end()};
}

double norm_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double x : values) {
    sum += x * x;
  }
  return std::sqrt(sum);
}

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (const double x : values) {
    largest = std::max(largest, std::abs(x));
  }
  return largest;
}

class GptGolden : public ::testing::TestWithParam<const char*> {};

void check_gradients(const Golden& golden, Rank& rank, double tolerance) {
  double squares = 0;
  for (const Parameter* parameter : rank.model().parameters()) {
    const double size = norm_of(stored<double>(golden.file, "grad." + parameter->name));
    squares += size * size;
  }
  for (const Parameter* parameter : rank.model().parameters()) {
    const std::vector<double> expected = stored<double>(golden.file, "grad." + parameter->name);
    std::vector<double> difference = on_host(parameter->grad, rank.stream());
    for (std::size_t i = 0; i < difference.size(); ++i) {
      difference[i] -= i < expected.size() ? expected[i] : 0.0;  // padding rows get no gradient
    }
    EXPECT_LE(norm_of(difference), tolerance * norm_of(expected) + 1e-8 * std::sqrt(squares))
        << parameter->name;
    constexpr double kElement = 10;  // no single element may be off by much more than the others
    EXPECT_LE(largest_of(difference),
              kElement * tolerance * largest_of(expected) + 1e-8 * std::sqrt(squares))
        << parameter->name;
  }
}

void check_against_torch(const std::string& model, DeviceKind device, DType dtype,
                         double tolerance) {
  const Golden golden(model);
  const auto rank = golden.rank(device, dtype);
  const HostBatch host = stored_batch(golden.file, "batch.", golden.config, 0);

  const double loss = rank->accumulate(std::span(&host, 1));
  const double expected_loss = stored<double>(golden.file, "loss").at(0);
  EXPECT_NEAR(loss, expected_loss, tolerance * expected_loss);
  check_gradients(golden, *rank, tolerance);

  Batch batch = upload(host, rank->stream());
  batch.labels = {};
  Context context = rank->context(batch, nullptr);
  const Value logits = rank->model().forward(context).stream;
  const std::vector<double> expected = stored<double>(golden.file, "logits");
  const std::vector<double> actual = on_host(logits.data, rank->stream());
  const std::int64_t vocabulary = golden.config.at("vocabulary"), columns = logits.shape().back();
  std::vector<double> difference;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::int64_t row = static_cast<std::int64_t>(i) / vocabulary;
    difference.push_back(actual[row * columns + static_cast<std::int64_t>(i) % vocabulary] -
                         expected[i]);
  }
  EXPECT_LE(norm_of(difference), tolerance * norm_of(expected));
}

TEST_P(GptGolden, EqualsTorchInFp64) {
  check_against_torch(GetParam(), DeviceKind::cpu, DType::fp64, 1e-7);  // the score scale is fp32
}

TEST_P(GptGolden, EqualsTorchInFp32OnCpu) {
  check_against_torch(GetParam(), DeviceKind::cpu, DType::fp32, 1e-5);
}

TEST_P(GptGolden, EqualsTorchInFp32OnCuda) {
  if (num_cuda_devices() == 0) {
    GTEST_SKIP() << "no GPU on this machine";
  }
  check_against_torch(GetParam(), DeviceKind::cuda, DType::fp32, 1e-4);
}

void check_training(const std::string& model, DeviceKind device) {
  const Golden golden(model);
  const auto rank = golden.rank(device, DType::fp32);
  const std::vector<double> losses = stored<double>(golden.file, "losses");
  const std::vector<double> norms = stored<double>(golden.file, "norms");
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const HostBatch host =
        stored_batch(golden.file, "steps.", golden.config, static_cast<std::int64_t>(i));
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
                                           "geglu_gqa", "documents"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace bloomery::testing
