// Conversions need memory for a few tensors, however large the model is.
#include <gtest/gtest.h>

#include <fstream>

#include "checkpoint/checkpoint_case.h"
#include "checkpoint/convert.h"
#include "checkpoint/model_source_case.h"

namespace bloomery {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

// Of this process in bytes: "VmRSS" now, "VmHWM" at most since it was reset.
std::int64_t memory(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":")) {
      return std::stoll(line.substr(field.size() + 1)) * 1024;
    }
  }
  return 0;
}

ModelOptions large_gpt() {
  ModelOptions o;
  o.num_layers = 5;
  o.hidden_size = 1024;
  o.attention.num_heads = 8;
  o.vocabulary.size = 4096;
  o.positions.max_length = 16;
  return completed(o);
}

// 256 MiB of weights of at most 16 MiB, each made when it is read.
class LargeModel final : public ModelSource {
 public:
  explicit LargeModel(Stream& stream) : ModelSource(stream) {
    record_.model = large_gpt();
    const Model model(record_.model, Mesh::single(), DType::fp32);
    for (const Parameter* parameter : model.parameters()) {
      weights_.emplace(parameter->name, Entry{DType::fp32, parameter->box.global});
    }
  }
  Tensor read(const std::string& name) const override {
    return Tensor::zeros(*stream_, DType::fp32, weights_.at(name).shape);
  }
};

TEST(ConvertMemory, IsThatOfAFewTensors) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep memory of their own";
#endif
  const TestFolder folder;
  Device device{{.num_threads = 2}};
  Stream stream(device);
  write_hf(LargeModel(stream), folder.path() / "hf");
  const auto added = [&](const char* from, const char* to, ConvertOptions options) {
    options.input = folder.path() / from;
    options.output = folder.path() / to;
    std::ofstream("/proc/self/clear_refs") << "5";
    const std::int64_t before = memory("VmRSS");
    convert_model(stream, options, Log(0, 1, LogLevel::error));
    return (memory("VmHWM") - before) / kMiB;
  };
  constexpr std::int64_t kMost = 128;  // MiB
  EXPECT_LT(added("hf", "native", {.to = ModelForm::native}), kMost);
  std::filesystem::remove_all(folder.path() / "hf");
  EXPECT_LT(added("native", "hf", {.to = ModelForm::hf, .max_shard_bytes = 100 * kMiB}), kMost);
  EXPECT_LT(added("native", "megatron", {.to = ModelForm::megatron, .layout = {2, 1}}), kMost);
  EXPECT_LT(added("native", "deepspeed", {.to = ModelForm::deepspeed, .layout = {2, 1}}), kMost);
  EXPECT_LT(added("native", "exact", {.to = ModelForm::exact_weights, .safetensors = true}), kMost);
}

}  // namespace
}  // namespace bloomery
