#include <gtest/gtest.h>

#include "checkpoint/hf/gpt2.h"

namespace bloomery {
namespace {

std::string complaint(const std::string& json) {
  try {
    read_gpt2_config(json, "config.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Gpt2Config, AbsentKeysHaveTheDefaultsOfTransformers) {
  const ModelOptions o = read_gpt2_config(R"({"model_type": "gpt2"})", "config.json").options;
  EXPECT_EQ(o.num_layers, 12);
  EXPECT_EQ(o.hidden_size, 768);
  EXPECT_EQ(o.attention.num_heads, 12);
  EXPECT_EQ(o.mlp.ffn, 3072);
  EXPECT_EQ(o.vocabulary.size, 50257);
  EXPECT_EQ(o.positions.max_length, 1024);
  EXPECT_EQ(o.norm.epsilon, 1e-5f);
  EXPECT_EQ(o.activation, Activation::gelu_tanh);
  EXPECT_TRUE(o.tied);
  EXPECT_EQ(o.residual.dropout, 0.1f);
}

TEST(Gpt2Config, AbsentTokensAreThoseOfGpt2) {
  const auto tokens = [](const std::string& more) {
    return read_gpt2_config(concat(R"({"model_type": "gpt2")", more, "}"), "c").tokens;
  };
  EXPECT_EQ(tokens(""), (HfTokenIds{50256, 50256, std::nullopt}));
  EXPECT_EQ(tokens(R"(, "eos_token_id": null)"), (HfTokenIds{50256, std::nullopt, std::nullopt}));
  EXPECT_EQ(tokens(R"(, "vocab_size": 100)"), HfTokenIds());
}

TEST(Gpt2Config, BothSpellingsOfSizes) {
  const ModelOptions o = read_gpt2_config(R"({"architectures": ["GPT2LMHeadModel"],
      "hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 2,
      "max_position_embeddings": 5, "n_inner": 7, "activation_function": "gelu"})",
                                        "c")
                           .options;
  EXPECT_EQ(o.hidden_size, 8);
  EXPECT_EQ(o.num_layers, 3);
  EXPECT_EQ(o.attention.num_heads, 2);
  EXPECT_EQ(o.positions.max_length, 5);
  EXPECT_EQ(o.mlp.ffn, 7);
  EXPECT_EQ(o.activation, Activation::gelu_erf);
}

TEST(Gpt2Config, NamesWhatItDoesNotCompute) {
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
  EXPECT_NE(complaint(R"({"model_type": "llama"})").find("llama"), std::string::npos);
  EXPECT_NE(complaint("{}"), "");
  EXPECT_NE(complaint("[1]"), "");
  EXPECT_NE(complaint("{"), "");
  EXPECT_EQ(complaint(R"({"model_type": "gpt2", "reorder_and_upcast_attn": true})"), "");
}

TEST(Gpt2Config, AllProblemsInOneMessage) {
  const std::string text = complaint(
      R"({"model_type": "gpt2", "scale_attn_weights": false, "activation_function": "mish"})");
  EXPECT_NE(text.find("scale_attn_weights"), std::string::npos);
  EXPECT_NE(text.find("mish"), std::string::npos);
}

TEST(Gpt2Config, WrittenAndReadAgain) {
  Gpt2Config config;
  config.options.num_layers = 3;
  config.options.hidden_size = 48;
  config.options.attention.num_heads = 4;
  config.options.mlp.ffn = 100;
  config.options.vocabulary.size = 321;
  config.options.positions.max_length = 64;
  config.options.norm.epsilon = 1e-6f;
  config.options.vocabulary.untied = true;
  config.options.attention.dropout = 0.3f;
  config.tokens = {320, 319, std::nullopt};
  for (const Activation activation : {Activation::gelu_tanh, Activation::gelu_erf, Activation::silu,
                                      Activation::relu, Activation::squared_relu}) {
    config.options.activation = activation;
    const std::string text = write_gpt2_config(config, DType::bf16);
    const Gpt2Config again = read_gpt2_config(text, "config.json");
    EXPECT_EQ(again.options.activation, activation);
    EXPECT_EQ(write_gpt2_config(again, DType::bf16), text);
    EXPECT_EQ(again.tokens, config.tokens);
    EXPECT_NE(text.find("1e-06"), std::string::npos) << text;
  }
}

TEST(Gpt2Config, SaysWhyAModelIsNoGpt2) {
  EXPECT_TRUE(gpt2_problems({}).empty());
  ModelOptions llama;
  llama.positions.rotary = true;
  llama.norm.kind = NormKind::rms;
  llama.gated = true;
  llama.bias = false;
  llama.attention.num_groups = 4;
  EXPECT_EQ(gpt2_problems(llama).size(), 5u);
}

TEST(Gpt2Tensors, MaskBuffersAreKnown) {
  EXPECT_TRUE(is_gpt2_mask("h.0.attn.bias"));
  EXPECT_TRUE(is_gpt2_mask("h.47.attn.masked_bias"));
  EXPECT_FALSE(is_gpt2_mask("h.0.attn.c_attn.bias"));
  EXPECT_FALSE(is_gpt2_mask("h.x.attn.bias"));
  EXPECT_FALSE(is_gpt2_mask("h."));
}

}  // namespace
}  // namespace bloomery
