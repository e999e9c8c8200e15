#include "checkpoint/hf/hf_form.h"

#include <gtest/gtest.h>

#include "checkpoint/hf/tensor_map.h"
#include "models/record.h"

namespace bloomery {
namespace {

std::string complaint(const std::string& json) {
  try {
    read_hf_config(json, "config.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(HfConfig, AbsentKeysHaveTheDefaultsOfTransformers) {
  const ModelOptions o = read_hf_config(R"({"model_type": "gpt2"})", "config.json").options;
  EXPECT_EQ(o.num_layers, 12);
  EXPECT_EQ(o.hidden_size, 768);
  EXPECT_EQ(o.attention.num_heads, 12);
  EXPECT_EQ(o.mlp.ffn, 3072);
  EXPECT_EQ(o.vocabulary.size, 50257);
  EXPECT_EQ(o.positions.max_length, 1024);
  EXPECT_EQ(o.norm.epsilon, 1e-5f);
  EXPECT_EQ(o.mlp.kind, MlpKind::gelu_tanh);
  EXPECT_FALSE(o.vocabulary.untied);
  EXPECT_EQ(o.residual.dropout, 0.1f);
}

TEST(HfConfig, AbsentTokensAreThoseOfGpt2) {
  const auto tokens = [](const std::string& more) {
    return read_hf_config(concat(R"({"model_type": "gpt2")", more, "}"), "c").tokens;
  };
  EXPECT_EQ(tokens(""), (HfTokenIds{50256, 50256, std::nullopt}));
  EXPECT_EQ(tokens(R"(, "eos_token_id": null)"), (HfTokenIds{50256, std::nullopt, std::nullopt}));
  EXPECT_EQ(tokens(R"(, "vocab_size": 100)"), HfTokenIds());
}

TEST(HfConfig, BothSpellingsOfSizes) {
  const ModelOptions o = read_hf_config(R"({"architectures": ["GPT2LMHeadModel"],
      "hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 2,
      "max_position_embeddings": 5, "n_inner": 7, "activation_function": "gelu"})",
                                        "c")
                             .options;
  EXPECT_EQ(o.hidden_size, 8);
  EXPECT_EQ(o.num_layers, 3);
  EXPECT_EQ(o.attention.num_heads, 2);
  EXPECT_EQ(o.positions.max_length, 5);
  EXPECT_EQ(o.mlp.ffn, 7);
  EXPECT_EQ(o.mlp.kind, MlpKind::gelu_erf);
}

TEST(HfConfig, NamesWhatItDoesNotCompute) {
  const std::pair<const char*, const char*> cases[] = {{"scale_attn_weights", "false"},
                                                       {"scale_attn_by_inverse_layer_idx", "true"},
                                                       {"add_cross_attention", "true"},
                                                       {"activation_function", "\"quick_gelu\""},
                                                       {"quantization_config", "{\"bits\": 8}"},
                                                       {"pruned_heads", "{\"0\": [1]}"},
                                                       {"n_layer", "0"},
                                                       {"n_layer", "\"two\""},
                                                       {"vocab_size", "1e99"},
                                                       {"n_head", "7"},
                                                       {"tie_word_embeddings", "1"},
                                                       {"layer_norm_epsilon", "-1"}};
  for (const auto& [key, value] : cases) {
    const std::string text =
        complaint(concat(R"({"model_type": "gpt2", ")", key, "\": ", value, "}"));
    EXPECT_NE(text.find(key), std::string::npos) << key << " " << value << ": " << text;
  }
  EXPECT_NE(complaint(R"({"model_type": "mamba"})").find("mamba"), std::string::npos);
  EXPECT_NE(complaint("{}"), "");
  EXPECT_NE(complaint("[1]"), "");
  EXPECT_NE(complaint("{"), "");
  EXPECT_EQ(complaint(R"({"model_type": "gpt2", "reorder_and_upcast_attn": true})"), "");
}

TEST(HfConfig, AllProblemsInOneMessage) {
  const std::string text = complaint(
      R"({"model_type": "gpt2", "scale_attn_weights": false, "activation_function": "mish"})");
  EXPECT_NE(text.find("scale_attn_weights"), std::string::npos);
  EXPECT_NE(text.find("mish"), std::string::npos);
}

HfModelConfig small_gpt2() {
  HfModelConfig config = read_hf_config(R"({"model_type": "gpt2", "n_layer": 3, "n_embd": 48,
      "n_head": 4, "n_inner": 100, "vocab_size": 321, "n_positions": 64,
      "layer_norm_epsilon": 1e-6, "tie_word_embeddings": false, "attn_pdrop": 0.3})",
                                        "c");
  config.tokens = {320, 319, std::nullopt};
  return config;
}

TEST(HfConfig, WrittenAndReadAgain) {
  HfModelConfig config = small_gpt2();
  for (const MlpKind kind : {MlpKind::gelu_tanh, MlpKind::gelu_erf, MlpKind::silu, MlpKind::relu,
                             MlpKind::squared_relu}) {
    config.options.mlp.kind = kind;
    const auto write = [](const HfModelConfig& c) {
      return hf_config_text(*c.form, c.options, c.tokens, DType::bf16);
    };
    const std::string text = write(config);
    const HfModelConfig again = read_hf_config(text, "config.json");
    EXPECT_EQ(again.options.mlp.kind, kind);
    EXPECT_EQ(write(again), text);
    EXPECT_EQ(again.tokens, config.tokens);
    EXPECT_NE(text.find("1e-06"), std::string::npos) << text;
  }
}

// Of every family: what its own configuration says comes back, whatever form it was written in.
TEST(HfConfig, EveryFamilyKeepsItsOptions) {
  const char* configs[] = {
      R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 8, "head_dim": 12,
          "num_key_value_heads": 2, "attention_bias": true, "rope_theta": 5e5, "vocab_size": 77,
          "num_hidden_layers": 2, "intermediate_size": 96, "max_position_embeddings": 131072,
          "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})",
      R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 77,
          "num_hidden_layers": 2, "intermediate_size": 96, "mlp_bias": true,
          "rope_parameters": {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0,
          "original_max_position_embeddings": 32, "beta_fast": 16.0}})",
      R"({"model_type": "qwen2", "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 77,
          "num_key_value_heads": 2, "num_hidden_layers": 2, "intermediate_size": 96,
          "tie_word_embeddings": true, "rope_scaling": {"type": "linear", "factor": 2.0}})",
      R"({"model_type": "gpt_neox", "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 77,
          "num_hidden_layers": 2, "intermediate_size": 96, "rotary_pct": 0.5,
          "rotary_emb_base": 20000, "use_parallel_residual": false})",
      R"({"model_type": "gpt_neox", "hidden_size": 64, "num_attention_heads": 2, "vocab_size": 77,
          "num_hidden_layers": 2, "intermediate_size": 96})",
      R"({"model_type": "mistral", "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 77,
          "num_hidden_layers": 2, "intermediate_size": 96, "sliding_window": 17})",
      R"({"model_type": "mistral", "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 77,
          "num_hidden_layers": 2, "intermediate_size": 96, "sliding_window": null})",
      R"({"model_type": "qwen2", "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 77,
          "num_key_value_heads": 2, "num_hidden_layers": 3, "intermediate_size": 96,
          "use_sliding_window": true, "sliding_window": 9, "max_window_layers": 1})",
      R"({"model_type": "qwen3", "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 77,
          "num_key_value_heads": 2, "num_hidden_layers": 3, "intermediate_size": 96,
          "use_sliding_window": true, "attention_bias": true,
          "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]})",
      R"({"model_type": "gemma", "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 77,
          "num_key_value_heads": 1, "num_hidden_layers": 2, "intermediate_size": 96,
          "hidden_act": "gelu", "head_dim": 24})"};
  for (const char* json : configs) {
    const HfModelConfig config = read_hf_config(json, "c");
    const std::string text =
        hf_config_text(*config.form, config.options, config.tokens, DType::fp32);
    const HfModelConfig again = read_hf_config(text, "written");
    EXPECT_EQ(again.form, config.form);
    EXPECT_EQ(model_differences(config.options, again.options), std::vector<std::string>()) << text;
    EXPECT_EQ(&hf_form(config.options), config.form);
    EXPECT_EQ(again.tokens, config.tokens);
  }
}

TEST(HfConfig, WhatMegatronsFlagsMakeOfAGptIsALlamaThere) {
  ModelOptions o = small_gpt2().options;
  o.positions.rotary = true;
  o.norm.kind = NormKind::rms;
  o.mlp.kind = MlpKind::swiglu;
  o.attention.qkv_bias = o.attention.output_bias = o.mlp.bias = false;
  EXPECT_EQ(hf_form(o).model_type, "llama");
  o.attention.window = 3;
  EXPECT_EQ(hf_form(o).model_type, "mistral");
  o.attention.head_norm = true;
  EXPECT_EQ(hf_form(o).model_type, "qwen3");
  o.attention.window = 0;
  o.attention.head_norm = false;
  o.attention.qkv_bias = true;
  EXPECT_EQ(hf_form(o).model_type, "qwen2");
  o.residual.after_norm = true;
  try {
    hf_form(o);
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("its residuals branch off after the norm"), std::string::npos) << text;
    EXPECT_NE(text.find("no gpt2: "), std::string::npos) << text;
  }
}

// A query sees `window_of` keys in each layer.
TEST(HfConfig, WindowsAreThoseOfTransformers) {
  const auto windows = [](const std::string& more) {
    const HfModelConfig c = read_hf_config(
        concat(R"({"hidden_size": 64, "num_attention_heads": 8, "num_hidden_layers": 3, )", more,
               "}"),
        "c");
    std::vector<std::int64_t> all;
    for (std::int64_t layer = 0; layer < 3; ++layer) {
      all.push_back(c.options.attention.window_of(layer));
    }
    return all;
  };
  using Windows = std::vector<std::int64_t>;
  EXPECT_EQ(windows(R"("model_type": "mistral")"), (Windows{4096, 4096, 4096}));
  EXPECT_EQ(windows(R"("model_type": "mistral", "sliding_window": null)"), (Windows{0, 0, 0}));
  EXPECT_EQ(windows(R"("model_type": "mistral", "sliding_window": 5)"), (Windows{5, 5, 5}));
  EXPECT_EQ(windows(R"("model_type": "qwen2", "sliding_window": 5)"), (Windows{0, 0, 0}));
  const std::string used = R"("model_type": "qwen2", "use_sliding_window": true, )";
  EXPECT_EQ(windows(used + R"("sliding_window": 5)"), (Windows{0, 0, 0}));  // from layer 28 on
  EXPECT_EQ(windows(used + R"("max_window_layers": 2)"), (Windows{0, 0, 4096}));
  EXPECT_EQ(windows(used + R"("max_window_layers": 0, "sliding_window": null)"),
            (Windows{0, 0, 0}));
  EXPECT_EQ(windows(used + R"("sliding_window": 7, "layer_types": ["sliding_attention",
                              "full_attention", "sliding_attention"])"),
            (Windows{7, 0, 7}));
  for (const char* bad : {R"("sliding_window": 0)", R"("layer_types": ["full_attention"])",
                          R"("layer_types": ["a", "b", "c"])"}) {
    EXPECT_NE(complaint(concat(R"({"num_hidden_layers": 3, )", used, bad, "}")), "") << bad;
  }
}

TEST(HfConfig, RefusesRotaryPositionsThatItDoesNotCompute) {
  for (const char* more : {R"("rope_scaling": {"rope_type": "longrope", "factor": 2.0})",
                           R"("rope_parameters": {"full_attention": {"rope_theta": 1e4}})",
                           R"("rope_scaling": {"rope_type": "llama3", "factor": 0})"}) {
    const std::string text = complaint(concat(R"({"model_type": "llama", )", more, "}"));
    EXPECT_NE(text, "") << more;
  }
}

TEST(TensorMap, QueriesKeysAndValuesBecomeOneTensorAndBack) {
  Device device(DeviceOptions{.num_threads = 1});
  Stream stream(device);
  const HfModelConfig config = read_hf_config(
      R"({"model_type": "llama", "hidden_size": 6, "num_attention_heads": 4, "head_dim": 2,
          "num_key_value_heads": 2, "vocab_size": 5, "num_hidden_layers": 1,
          "intermediate_size": 3})",
      "c");
  for (const TensorMap& map : expand(config.form->tensors, config.options)) {
    std::vector<Tensor> theirs;
    float next = 0;
    for (const TensorMap::Part& part : map.parts) {
      std::vector<float> numbers(static_cast<std::size_t>(part.their_shape.numel()));
      for (float& number : numbers) {
        number = next++;
      }
      theirs.push_back(Tensor::from_host(stream, numbers, part.their_shape));
    }
    const Tensor ours = to_ours(stream, map, theirs);
    const std::vector<Tensor> back = to_theirs(stream, map, ours);
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      EXPECT_EQ(back[i].to_host<float>(stream), theirs[i].to_host<float>(stream)) << map.ours;
    }
    if (map.ours == "blocks.0.attention.qkv.weight") {
      // Group 1: its two queries are rows 4 to 7 of q_proj, its key rows 2 and 3 of k_proj.
      const std::vector<float> numbers = ours.to_host<float>(stream);
      EXPECT_EQ(ours.shape(), (Shape{2, 4, 2, 6}));
      EXPECT_EQ(numbers[48], 4 * 6);
      EXPECT_EQ(numbers[48 + 24], 8 * 6 + 2 * 6);
    }
  }
}

}  // namespace
}  // namespace bloomery
