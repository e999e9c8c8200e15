#include "checkpoint/hf/adapter.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "checkpoint/hf/adapter_layers.h"
#include "checkpoint/hf/hf_model.h"
#include "checkpoint/model_source_case.h"
#include "tensor/safetensors.h"

namespace bloomery {
namespace {

class AdapterTest : public testing::Test {
 protected:
  AdapterTest() : stream_(device_) {
    write_hf(stream_, at("model"), completed(small_gpt()),
             random_weights(stream_, completed(small_gpt()), DType::fp32));
    std::filesystem::create_directories(at("adapter"));
    config(
        R"({"peft_type": "LORA", "lora_alpha": 6, "r": 2, "bias": "none", "fan_in_fan_out": true})");
    matrices(kModule, 16, 48);
  }
  std::filesystem::path at(const char* name) const { return folder_.path() / name; }
  void config(const std::string& text) { write_file(at("adapter") / "adapter_config.json", text); }
  // Rank 2; a has ones in its first row alone, b counts.
  void matrices(const std::string& module, std::int64_t in, std::int64_t out) {
    std::vector<float> a(static_cast<std::size_t>(2 * in), 0), b;
    std::fill(a.begin(), a.begin() + in, 1.0f);
    for (std::int64_t i = 0; i < 2 * out; ++i) b.push_back(static_cast<float>(i));
    write_safetensors(at("adapter") / "adapter_model.safetensors", stream_,
                      {{module + ".lora_A.weight", Tensor::from_host(stream_, a, {2, in})},
                       {module + ".lora_B.weight", Tensor::from_host(stream_, b, {out, 2})}});
  }
  std::vector<float> weight(const ModelSource& model, const std::string& name) {
    return model.read(name).to_host<float>(stream_);
  }
  std::unique_ptr<ModelSource> adapted() {
    return with_adapter(open_model(stream_, at("model"), Log()), Adapter(stream_, at("adapter")));
  }
  std::string refusal() {
    try {
      adapted();
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }

  static constexpr char kModule[] = "base_model.model.transformer.h.1.attn.c_attn";
  Device device_;
  Stream stream_;
  TemporaryFolder folder_;
};

TEST_F(AdapterTest, IsAddedToTheWeightsThatItIsFor) {
  const auto base = open_model(stream_, at("model"), Log());
  const auto sum = merged(adapted());
  EXPECT_FALSE(sum->record().model.adapter.enabled);
  EXPECT_EQ(sum->weights().size(), base->weights().size());
  for (const auto& [name, entry] : base->weights()) {
    const std::vector<float> before = weight(*base, name), after = weight(*sum, name);
    if (name != "blocks.1.attention.qkv.weight") {
      EXPECT_EQ(before, after) << name;
      continue;
    }
    // Ours is [head][q, k, v][channel][in]; theirs [in][q, k, v][head][channel].
    ASSERT_EQ(after.size(), 48u * 16u);
    for (std::size_t i = 0; i < after.size(); ++i) {
      const std::size_t row = i / 16, head = row / 24, kind = row % 24 / 8, channel = row % 8;
      const auto out = static_cast<float>(kind * 16 + head * 8 + channel);
      EXPECT_FLOAT_EQ(after[i], before[i] + 3 * 2 * out) << i;
    }
  }
}

TEST_F(AdapterTest, SaysWhatItDoesNotUnderstand) {
  const auto says = [&](const char* what) {
    EXPECT_NE(refusal().find(what), std::string::npos) << refusal();
  };
  matrices("base_model.model.transformer.h.7.attn.c_attn", 16, 48);
  says("no linear layer that can have an adapter is called transformer.h.7.attn.c_attn");
  matrices(kModule, 16, 32);
  says("but the model's is [48, 16]");
  config(R"({"peft_type": "IA3", "lora_alpha": 6})");
  says("peft_type is IA3");
  config(R"({"peft_type": "LORA", "lora_alpha": 6, "use_dora": true})");
  says("use_dora");
  config(R"({"peft_type": "LORA", "lora_alpha": 6, "bias": "all"})");
  says("biases");
  std::filesystem::remove(at("adapter") / "adapter_config.json");
  says("adapter_config.json is missing");
}

TEST_F(AdapterTest, StandsBesideTheWeightsAndIsWrittenAsItWas) {
  const auto model = adapted();
  const AdapterOptions& options = model->record().model.adapter;
  EXPECT_EQ(options.targets, std::vector<std::string>{"blocks.1.attention.qkv"});
  EXPECT_EQ(options.rank, 2);
  EXPECT_EQ(options.scale(), 3);
  EXPECT_EQ(model->read("blocks.1.attention.qkv.lora_a").shape(), (Shape{1, 2, 16}));
  EXPECT_EQ(model->read("blocks.1.attention.qkv.lora_b").shape(), (Shape{2, 3, 8, 2}));
  std::filesystem::create_directories(at("written"));
  write_adapter(*model, "the-base", at("written"));
  const Adapter before(stream_, at("adapter")), after(stream_, at("written"));
  ASSERT_EQ(after.modules().size(), 1u);
  const auto& [module, matrices] = *after.modules().begin();
  EXPECT_EQ(module, std::string(kModule).substr(std::string_view("base_model.model.").size()));
  const Adapter::Matrices& first = before.modules().begin()->second;
  EXPECT_EQ(matrices.a.to_host<float>(stream_), first.a.to_host<float>(stream_));
  EXPECT_EQ(matrices.b.to_host<float>(stream_), first.b.to_host<float>(stream_));
  const std::string text = read_file(at("written") / "adapter_config.json");
  EXPECT_NE(text.find(R"("fan_in_fan_out": true)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("1.attn.c_attn")"), std::string::npos) << text;
}

// Parts of fused weights have products of their own, of which one has a smaller rank.
TEST_F(AdapterTest, IsForPartsOfFusedWeights) {
  ModelOptions llama = small_gpt();
  llama.family = "llama";
  find_family("llama").defaults(llama);
  llama.attention.num_groups = 1;
  llama.mlp.ffn = 24;
  llama = completed(llama);
  const auto base = random_weights(stream_, llama, DType::fp32);
  write_hf(stream_, at("llama"), llama, base);
  config(R"({"peft_type": "LORA", "lora_alpha": 6, "use_rslora": false})");
  std::vector<std::pair<std::string, Tensor>> tensors;
  const auto add = [&](const std::string& module, std::int64_t out, std::int64_t rank) {
    std::vector<float> a(static_cast<std::size_t>(16 * rank)),
        b(static_cast<std::size_t>(out * rank));
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) / 4;
    tensors.emplace_back(module + ".lora_A.weight", Tensor::from_host(stream_, a, {rank, 16}));
    tensors.emplace_back(module + ".lora_B.weight", Tensor::from_host(stream_, b, {out, rank}));
  };
  for (const char* layer : {"0", "1"}) {
    const std::string before = concat("base_model.model.model.layers.", layer, ".self_attn.");
    add(before + "q_proj", 16, 2);
    add(before + "v_proj", 8, 1);
  }
  write_safetensors(at("adapter") / "adapter_model.safetensors", stream_, tensors);
  const auto both =
      with_adapter(open_model(stream_, at("llama"), Log()), Adapter(stream_, at("adapter")));
  EXPECT_EQ(both->record().model.adapter.targets,
            (std::vector<std::string>{"attention.qkv.0", "attention.qkv.2"}));
  EXPECT_EQ(both->read("blocks.0.attention.qkv.lora_a").shape(), (Shape{2, 2, 16}));
  const auto sum = merged(
      with_adapter(open_model(stream_, at("llama"), Log()), Adapter(stream_, at("adapter"))));
  const std::string name = "blocks.0.attention.qkv.weight";
  const std::vector<float> before = base.at(name).to_host<float>(stream_),
                           after = weight(*sum, name);
  // One group: two query heads of 8 rows, a key and a value.
  for (std::size_t i = 0; i < after.size(); ++i) {
    const std::size_t row = i / 16, in = i % 16;
    double change = 0;
    for (std::size_t j = 0; row < 16 && j < 2; ++j) {
      change += 3 * (static_cast<double>((row * 2 + j) % 5) / 4) *
                (static_cast<double>((j * 16 + in) % 7) - 3);
    }
    if (row >= 24) {
      change = 6 * (static_cast<double>((row - 24) % 5) / 4) * (static_cast<double>(in % 7) - 3);
    }
    EXPECT_NEAR(after[i], before[i] + change, 1e-5) << i;
  }
}

TEST_F(AdapterTest, TargetsAreWordsOfEither) {
  const ModelOptions gpt = completed(small_gpt());
  using Words = std::vector<std::string>;
  EXPECT_EQ(adapter_targets(gpt, Words{}), Words{"attention.qkv"});
  EXPECT_EQ(adapter_targets(gpt, Words{"c_attn"}), Words{"attention.qkv"});
  EXPECT_EQ(adapter_targets(gpt, Words{"c_proj"}), (Words{"attention.projection", "mlp.down"}));
  EXPECT_EQ(adapter_targets(gpt, Words{"mlp.c_proj"}), Words{"mlp.down"});
  EXPECT_EQ(adapter_targets(gpt, Words{"h.1.mlp.c_fc"}), Words{"blocks.1.mlp.up"});
  EXPECT_EQ(adapter_targets(gpt, Words{"blocks.1.mlp.up"}), Words{"blocks.1.mlp.up"});
  EXPECT_EQ(adapter_targets(gpt, Words{"all-linear"}).size(), 4u);
  EXPECT_THROW(adapter_targets(gpt, Words{"q_proj"}), Error);
  ModelOptions odd = gpt;
  odd.norm.one_plus_gain = true;  // Hugging Face has no such GPT
  EXPECT_EQ(adapter_targets(odd, Words{}), Words{"attention.qkv"});
  EXPECT_EQ(adapter_targets(odd, Words{"down"}), Words{"mlp.down"});
}

}  // namespace
}  // namespace bloomery
