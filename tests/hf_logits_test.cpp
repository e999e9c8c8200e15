// GPT-2s of transformers in our GPT: the parameters of the one are those of the other, and so are
// the logits, for the folders of tools/golden/hf.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "checkpoint/hf/hf_model.h"
#include "samples/language_model_dataset.h"
#include "tensor/safetensors.h"
#include "train/step/rank.h"

namespace bloomery {
namespace {

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(std::getenv("BLOOMERY_ROOT")) / "tests/golden/hf" / name;
}

// Converts to the parameter's dtype. Padding rows keep their zeros.
void load(Parameter& parameter, const Tensor& tensor) {
  ASSERT_EQ(parameter.box.global, tensor.shape()) << parameter.name;
  dispatch_floating(tensor.dtype(), [&](auto from) {
    dispatch_floating(parameter.value.dtype(), [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      const From* source = static_cast<const From*>(tensor.data());
      To* target = static_cast<To*>(parameter.value.data());
      for (std::int64_t i = 0; i < tensor.numel(); ++i) {
        target[i] = To(static_cast<Accumulator<To>>(static_cast<Accumulator<From>>(source[i])));
      }
    });
  });
}

std::vector<double> logits(Rank& rank, const HostBatch& host) {
  Batch batch = rank.upload(host);
  batch.labels = {};
  Context context = rank.context(batch, nullptr);
  const Value value = rank.model().forward(context).stream;
  const std::int64_t columns = value.shape().back(), real = rank.model().options().vocabulary.size;
  std::vector<double> all;
  const auto append = [&](const auto& numbers) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (static_cast<std::int64_t>(i) % columns < real) {
        all.push_back(static_cast<double>(numbers[i]));
      }
    }
  };
  if (value.dtype() == DType::fp64) {
    append(value.data.to_host<double>(rank.stream()));
  } else {
    append(value.data.to_host<float>(rank.stream()));
  }
  return all;
}

class HfLogits : public ::testing::TestWithParam<std::tuple<const char*, DType>> {};

TEST_P(HfLogits, EqualTransformers) {
  const auto& [name, dtype] = GetParam();
  Device device({.num_threads = 1});
  Stream stream(device);
  const HfModel model = read_hf(stream, golden(name));
  RankOptions options{
      .model = model.options, .dtype = dtype, .device = {.num_threads = 2}, .training = false};
  options.model.vocabulary.divisible_by = 16;
  Rank rank(options);
  ASSERT_EQ(rank.model().parameters().size(), model.tensors.size());
  for (Parameter* parameter : rank.model().parameters()) {
    ASSERT_TRUE(model.tensors.contains(parameter->name)) << parameter->name;
    load(*parameter, model.tensors.at(parameter->name));
  }

  const SafetensorsFile file(golden(name) / "logits.safetensors");
  const Shape shape = file.entry("tokens").shape;
  HostBatch batch(DeviceKind::cpu, language_model_fields(shape[1], {}), shape[0]);
  const auto tokens = file.read(stream, "tokens").to_host<std::int32_t>(stream);
  batch.set("tokens", tokens);
  batch.set("labels", tokens);
  std::ranges::fill(batch.samples(), 0);

  const std::vector<double> expected = file.read(stream, "logits").to_host<double>(stream);
  const std::vector<double> actual = logits(rank, batch);
  ASSERT_EQ(actual.size(), expected.size());
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(actual[i] - expected[i]));
  }
  EXPECT_LE(largest, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Folders, HfLogits,
                         ::testing::Combine(::testing::Values("safetensors", "safetensors_sharded",
                                                              "bin", "bin_sharded", "bin_legacy",
                                                              "base_model"),
                                            ::testing::Values(DType::fp32, DType::fp64)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  name(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace bloomery
