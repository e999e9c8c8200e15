// BERT against PyTorch in fp64: logits of both heads, both losses and all gradients of their sum,
// for the models of tools/golden/bert.py; and of the heads of tasks.
#include <nlohmann/json.hpp>

#include "autograd/metrics.h"
#include "golden_model.h"
#include "harness/golden_errors.h"
#include "models/family.h"
#include "samples/padded_dataset.h"
#include "samples/sentence_dataset.h"
#include "samples/tasks/task_dataset.h"

namespace bloomery::testing {
namespace {

MlpKind gelu(const nlohmann::json& approximation) {
  return approximation == "tanh" ? MlpKind::gelu_tanh : MlpKind::gelu_erf;
}

struct Golden {
  explicit Golden(const std::string& model)
      : file(repository_root() + "/tests/golden/bert_" + model + ".safetensors"),
        config(nlohmann::json::parse(file.metadata().at("config"))) {}

  ModelOptions options() const {
    ModelOptions o;
    o.family = "bert";
    o.num_layers = config.at("layers");
    o.hidden_size = config.at("hidden");
    o.attention.num_heads = config.at("heads");
    o.mlp.ffn = config.at("ffn");
    o.mlp.kind = gelu(config.at("activation"));
    o.head_activation = gelu(config.at("head_activation"));
    o.norm.epsilon = config.at("epsilon");
    o.positions.max_length = config.at("max_positions");
    o.vocabulary.size = config.at("vocabulary");
    o.vocabulary.divisible_by = 16;  // so that there are padded columns to mask
    o.vocabulary.untied = config.at("untied");
    o.residual.after_norm = config.at("after_norm");
    o.task = task();
    o.segments.binary_head = config.at("binary_head") && !o.task.any();
    return o;
  }
  TaskHeadOptions task() const {
    const std::string kind = config.value("task", "none");
    return {.kind = kind == "classification"    ? TaskHeadKind::classification
                    : kind == "regression"      ? TaskHeadKind::regression
                    : kind == "multiple-choice" ? TaskHeadKind::multiple_choice
                                                : TaskHeadKind::none,
            .classes = config.value("classes", std::int64_t{2})};
  }
  std::unique_ptr<Rank> rank(DeviceKind device, DType dtype) const {
    RankOptions all;
    all.model = options();
    all.dtype = dtype;
    all.device = {.kind = device, .num_threads = 2, .poison = true};
    auto made = std::make_unique<Rank>(all);
    for (Parameter* parameter : made->model().parameters()) {
      load_stored(file, *parameter, made->stream());
    }
    return made;
  }
  HostBatch batch() const {
    if (const TaskHeadOptions head = task(); head.any()) {
      const TaskKind& kind = find_task(head.kind == TaskHeadKind::regression        ? "STS-B"
                                       : head.kind == TaskHeadKind::multiple_choice ? "RACE"
                                                                                    : "MNLI");
      return stored_batch(file, "batch.", task_fields(kind, config.at("length"), false, 0),
                          config.at("sequences").get<std::int64_t>() / kind.num_sequences(), 0);
    }
    const SampleFields fields =
        padded_fields(bert_fields({.seq_length = config.at("length").get<std::int64_t>()}));
    return stored_batch(file, "batch.", fields, config.at("sequences"), 0);
  }

  SafetensorsFile file;
  nlohmann::json config;
};

void expect_logits(const Golden& golden, const char* name, const Tensor& actual, Rank& rank,
                   std::int64_t columns, double tolerance) {
  const std::vector<double> expected = stored<double>(golden.file, name);
  EXPECT_LE(largest_of(differences(on_host(actual, rank.stream()), expected, columns)),
            tolerance * largest_of(expected))
      << name;
}

class BertGolden : public ::testing::TestWithParam<const char*> {};

void check_against_torch(const std::string& model, DeviceKind device, DType dtype,
                         double tolerance) {
  const Golden golden(model);
  const auto rank = golden.rank(device, dtype);
  const HostBatch host = golden.batch();
  rank->accumulate(std::span(&host, 1));
  check_gradients(golden.file, *rank, tolerance, tolerance);

  const std::vector<double> losses = stored<double>(golden.file, "losses");
  const Rank::Losses reported =
      rank->evaluate({1, [&](std::int64_t) { return rank->upload(host); }});
  ASSERT_EQ(reported.size(), losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_EQ(reported[i].name, i == 0 ? "lm loss" : "sop loss");
    EXPECT_NEAR(reported[i].value, losses[i], tolerance * losses[i]);
  }

  Batch batch = rank->upload(host);
  batch.labels = {};
  Context context = rank->context(batch, nullptr);
  Metrics metrics;
  context.metrics = &metrics;
  const Value logits = rank->model().forward(context).stream;
  expect_logits(golden, "logits", logits.data, *rank, golden.config.at("vocabulary"), tolerance);
  ASSERT_EQ(static_cast<bool>(metrics.segment_logits), losses.size() == 2);
  if (metrics.segment_logits) {
    expect_logits(golden, "segment_logits", metrics.segment_logits, *rank, 2, tolerance);
  }
}

TEST_P(BertGolden, EqualsTorchInFp64) {
  check_against_torch(GetParam(), DeviceKind::cpu, DType::fp64, 1e-7);  // the score scale is fp32
}

TEST_P(BertGolden, EqualsTorchInFp32OnCpu) {
  check_against_torch(GetParam(), DeviceKind::cpu, DType::fp32, 1e-5);
}

TEST_P(BertGolden, EqualsTorchInFp32OnCuda) {
  if (num_cuda_devices() == 0) {
    GTEST_SKIP() << "no GPU on this machine";
  }
  check_against_torch(GetParam(), DeviceKind::cuda, DType::fp32, 1e-4);
}

class TaskGolden : public ::testing::TestWithParam<const char*> {};

void check_task_against_torch(const std::string& model, DeviceKind device, DType dtype,
                              double tolerance) {
  const Golden golden(model);
  const auto rank = golden.rank(device, dtype);
  const HostBatch host = golden.batch();
  const double expected = stored<double>(golden.file, "losses")[0];
  EXPECT_NEAR(rank->accumulate(std::span(&host, 1)), expected, tolerance * expected);
  // That of a bias which all choices share is zero but for the rounding of their probabilities.
  check_gradients(golden.file, *rank, tolerance, tolerance, 1e-7);

  Batch batch = rank->upload(host);
  Context context = rank->context(batch, nullptr);
  Metrics metrics;
  context.metrics = &metrics;
  rank->model().forward(context);
  const std::vector<double> outputs = stored<double>(golden.file, "logits");
  EXPECT_EQ(metrics.class_logits.numel(), std::ssize(outputs));
  expect_logits(golden, "logits", metrics.class_logits, *rank, metrics.class_logits.shape()[1],
                tolerance);
  batch.classes = batch.scores = {};
  const Value left = rank->model().forward(context).stream;
  EXPECT_EQ(on_host(left.data, rank->stream()), on_host(metrics.class_logits, rank->stream()));
}

TEST_P(TaskGolden, EqualsTorchInFp64) {
  check_task_against_torch(GetParam(), DeviceKind::cpu, DType::fp64, 1e-7);
}

TEST_P(TaskGolden, EqualsTorchInFp32OnCpu) {
  check_task_against_torch(GetParam(), DeviceKind::cpu, DType::fp32, 1e-5);
}

TEST_P(TaskGolden, EqualsTorchInFp32OnCuda) {
  if (num_cuda_devices() == 0) {
    GTEST_SKIP() << "no GPU on this machine";
  }
  check_task_against_torch(GetParam(), DeviceKind::cuda, DType::fp32, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Heads, TaskGolden, ::testing::Values("classes", "score", "choice"),
                         [](const auto& info) { return std::string(info.param); });

INSTANTIATE_TEST_SUITE_P(Models, BertGolden,
                         ::testing::Values("megatron", "original", "one_segment"),
                         [](const auto& info) { return std::string(info.param); });

// Of a micro-batch in which nothing is hidden there is a loss of the segments alone.
TEST(Bert, NothingHiddenIsNoLoss) {
  const Golden golden("megatron");
  const auto rank = golden.rank(DeviceKind::cpu, DType::fp32);
  HostBatch host = golden.batch();
  std::ranges::fill(host.array<float>("loss_mask"), 0.0f);
  std::ranges::fill(host.array<std::int32_t>("labels"), -1);
  const double loss = rank->accumulate(std::span(&host, 1));
  EXPECT_EQ(loss, 0);
  for (const Parameter* parameter : rank->model().parameters()) {
    for (const double x : on_host(parameter->grad, rank->stream())) {
      ASSERT_TRUE(std::isfinite(x)) << parameter->name;
    }
  }
}

// Padding changes nothing: neither what other tokens become nor any loss.
TEST(Bert, PaddingIsNotSeen) {
  const Golden golden("original");
  const auto rank = golden.rank(DeviceKind::cpu, DType::fp32);
  HostBatch host = golden.batch();
  const auto losses = [&] {
    return rank->evaluate({1, [&](std::int64_t) { return rank->upload(host); }});
  };
  const Rank::Losses before = losses();
  const auto tokens = host.array<std::int32_t>("tokens");
  const auto ends = host.array<std::int32_t>("key_end");
  const std::int64_t length = golden.config.at("length");
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(tokens.size()); ++i) {
    if (i % length >= ends[i]) {
      tokens[i] = 7;
    }
  }
  const Rank::Losses after = losses();
  EXPECT_EQ(before[0].value, after[0].value);
  EXPECT_EQ(before[1].value, after[1].value);
}

}  // namespace
}  // namespace bloomery::testing
