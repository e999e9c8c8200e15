#include "models/record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/option_table.h"
#include "models/family.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

ModelOptions small_model() {
  ModelOptions o;
  o.num_layers = 3;
  o.hidden_size = 48;
  o.attention.num_heads = 6;
  o.vocabulary.size = 77;
  o.positions.max_length = 33;
  return o;
}

ModelOptions read(const std::string& json) {
  std::vector<std::string> notes;
  return from_record(json, "here", notes);
}

std::string complaint(const std::string& json) {
  try {
    read(json);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string with(const std::string& record, const std::string& key, const Json& value) {
  Json object = Json::parse(record);
  object[key] = value;
  return object.dump();
}

// Every row that is described, with another value than its default: of all models, and of experts.
const std::pair<const char*, Json> kChanged[] = {
    {"num-layers", 5},
    {"hidden-size", 60},
    {"num-attention-heads", 10},
    {"num-key-value-heads", 2},
    {"kv-channels", 16},
    {"ffn-hidden-size", 40},
    {"vocabulary-size", 78},
    {"make-vocab-size-divisible-by", 8},
    {"max-position-embeddings", 34},
    {"normalization", "rmsnorm"},
    {"layernorm-epsilon", 3e-7},
    {"apply-layernorm-1p", true},
    {"activation", "swiglu"},
    {"bias-gelu-fusion", false},
    {"add-bias-linear", false},
    {"add-qkv-bias", false},
    {"add-attention-output-bias", false},
    {"add-mlp-bias", false},
    {"qk-layernorm", true},
    {"sliding-window", 9},
    {"window-attn-skip-freq", {1, 0, 1, 1, 0}},
    {"use-parallel-residual", true},
    {"apply-residual-connection-post-layernorm", true},
    {"fp32-residual-connection", true},
    {"untie-embeddings-and-output-weights", true},
    {"scale-embeddings", true},
    {"padded-vocab-in-softmax", true},
    {"use-rotary-position-embeddings", true},
    {"rotary-position-embeddings-theta", 12345.678901234567},
    {"rotary-percent", 0.25},
    {"rotary-interleaved", true},
    {"position-embedding", false},
    {"rope-scaling", "yarn"},
    {"rope-scaling-factor", 4.5},
    {"rope-original-length", 1000},
    {"rope-low-frequency-factor", 1.5},
    {"rope-high-frequency-factor", 3.5},
    {"rope-beta-fast", 30},
    {"rope-beta-slow", 2},
    {"rope-attention-factor", 1.25},
    {"rope-mscale", 0.5},
    {"rope-mscale-all-dim", 0.75},
    {"rope-truncate", false},
    {"attention-dropout", 0.1},
    {"hidden-dropout", 0.2},
    {"init-method-std", 0.1 / 3},
    {"init-method-xavier-uniform", true},
};
const std::pair<const char*, Json> kChangedExperts[] = {
    {"num-experts", {8}},
    {"expert-interval", 1},
    {"dense-layers", {3}},
    {"moe-ffn-hidden-size", 24},
    {"moe-shared-expert-intermediate-size", 40},
    {"topk", 3},
    {"moe-normalize-gates", true},
    {"moe-balance-all-choices", true},
    {"moe-token-dropping", false},
    {"moe-train-capacity-factor", 1.5},
    {"moe-eval-capacity-factor", 2.5},
    {"moe-min-capacity", 7},
    {"moe-random-token-selection", false},
    {"moe-top2-2nd-expert-sampling", false},
    {"moe-input-jitter-eps", 0.01},
    {"moe-loss-coeff", 0.02},
    {"moe-z-loss-coeff", 0.001},
};
const std::pair<const char*, Json> kChangedTuning[] = {
    {"lora", true},
    {"lora-rank", 3},
    {"lora-alpha", 5.5},
    {"use-rslora", true},
    {"lora-dropout", 0.25},
    {"lora-target-modules", {"attention.qkv"}},
    {"neftune-noise-alpha", 2.5},
};

TEST(Record, EveryOptionComesBackExactly) {
  std::vector<std::pair<const char*, Json>> changed(std::begin(kChanged), std::end(kChanged));
  changed.insert(changed.end(), std::begin(kChangedExperts), std::end(kChangedExperts));
  changed.insert(changed.end(), std::begin(kChangedTuning), std::end(kChangedTuning));
  Json all = Json::parse(to_record(small_model()));
  EXPECT_EQ(all.size(), changed.size() + 3) << "a row is not in the list of this test";
  for (const auto& [name, value] : changed) {
    ASSERT_TRUE(all.contains(name)) << name;
    EXPECT_NE(all[name], value) << name;
    all[name] = value;
  }
  EXPECT_EQ(Json::parse(to_record(read(all.dump()))), all);
  all["moe-shared-expert-intermediate-size"] = 0;  // there is one of the two
  all["mlp-type"] = "residual";
  EXPECT_EQ(Json::parse(to_record(read(all.dump()))), all);
}

// Which layers have a window: all, those of a list, or all but every so-many-th.
TEST(ModelOptions, WindowsByLayer) {
  ModelOptions o = small_model();
  o.num_layers = 5;
  o.attention.window = 7;
  const auto windows = [&](const std::vector<std::int64_t>& layers) {
    ModelOptions given = o;
    given.attention.window_layers = layers;
    const SelfAttentionOptions a = completed(given).attention;
    std::vector<std::int64_t> all;
    for (std::int64_t layer = 0; layer < 5; ++layer) {
      all.push_back(a.window_of(layer));
    }
    return all;
  };
  using Windows = std::vector<std::int64_t>;
  EXPECT_EQ(windows({}), (Windows{7, 7, 7, 7, 7}));
  EXPECT_EQ(windows({0, 1, 0, 0, 1}), (Windows{0, 7, 0, 0, 7}));
  EXPECT_EQ(windows({2}), (Windows{7, 0, 7, 0, 7}));
  EXPECT_EQ(windows({0, 0, 0, 0, 0}), (Windows{0, 0, 0, 0, 0}));
  o.attention.window_layers = {1, 0, 1};
  EXPECT_EQ(problems(o, {}).size(), 1u);
  o.attention.window_layers = {};
  EXPECT_EQ(problems(o, {}).size(), 0u);
  o.attention.causal = false;
  EXPECT_EQ(problems(o, {}).size(), 1u);
  o = small_model();
  o.norm.kind = NormKind::layer;
  o.attention.head_norm = true;
  EXPECT_EQ(problems(o, {}).size(), 1u);
}

TEST(Record, UnknownNamesAreToldAndMissingOnesHaveTheirDefaults) {
  Json record = Json::parse(to_record(small_model()));
  record["of-the-future"] = 3;
  record.erase("rope-scaling");
  std::vector<std::string> notes;
  const ModelOptions back = from_record(record.dump(), "here", notes);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("of-the-future"), std::string::npos);
  EXPECT_EQ(back.positions.scaling.kind, RotaryScaling::Kind::none);
  EXPECT_EQ(back.hidden_size, 48);
}

TEST(Record, NamesWhatIsWrong) {
  const std::string good = to_record(small_model());
  EXPECT_EQ(complaint(good), "");
  const std::pair<const char*, Json> cases[] = {
      {"num-layers", -1},       {"num-layers", "two"}, {"hidden-size", nullptr},
      {"activation", "mish"},   {"rotary-percent", 2}, {"layernorm-epsilon", "x"},
      {"vocabulary-size", 1e99}};
  for (const auto& [key, value] : cases) {
    const std::string text = complaint(with(good, key, value));
    EXPECT_NE(text.find(key), std::string::npos) << key << ": " << text;
    EXPECT_NE(text.find("here"), std::string::npos) << text;
  }
  EXPECT_NE(complaint(with(good, "num-attention-heads", 7)).find("attention heads"),
            std::string::npos);
  EXPECT_NE(complaint(with(good, "family", "gtp")).find("did you mean gpt?"), std::string::npos);
  EXPECT_NE(complaint(good.substr(0, good.size() - 1)).find("not valid JSON"), std::string::npos);
  EXPECT_EQ(complaint("[]"), "here: not a JSON object");
  EXPECT_EQ(complaint(std::string(100000, '[')), "here: nested more than 32 deep");
}

// As the first version wrote it; it had one family and names of its own.
constexpr const char* kFirst =
    R"({"num_layers":3,"hidden_size":48,"num_heads":6,"num_key_value_heads":2,"head_dim":0,)"
    R"("ffn_hidden_size":0,"vocabulary":77,"make_vocabulary_divisible_by":8,"max_positions":33,)"
    R"("norm":"rms","norm_epsilon":3.000000106112566e-07,"norm_one_plus_gain":true,)"
    R"("activation":"silu","gated":true,"bias":false,"tied":false,"positions":"rotary",)"
    R"("rotary_fraction":0.25,"rotary_base":12345.678901234567,"rotary_interleaved":true,)"
    R"("post_norm_residual":true,"fp32_residual":true,"padded_vocabulary_in_softmax":true,)"
    R"("attention_dropout":0.10000000149011612,"hidden_dropout":0.20000000298023224,)"
    R"("init_std":0.03333333333333333,"xavier_init":true,"recompute_method":"block",)"
    R"("recompute_num_layers":2})";

TEST(Record, TheFirstVersionIsStillRead) {
  const ModelOptions o = read(kFirst);
  EXPECT_EQ(o.family, "gpt");
  EXPECT_EQ(o.num_layers, 3);
  EXPECT_EQ(o.attention.num_groups, 2);
  EXPECT_EQ(o.attention.head_dim, 8);
  EXPECT_EQ(o.mlp.ffn, 192);
  EXPECT_EQ(o.mlp.kind, MlpKind::swiglu);
  EXPECT_EQ(o.norm.kind, NormKind::rms);
  EXPECT_EQ(o.norm.epsilon, 3e-7f);
  EXPECT_TRUE(o.norm.one_plus_gain);
  EXPECT_EQ(o.attention.qkv_bias, false);
  EXPECT_TRUE(o.vocabulary.untied);
  EXPECT_TRUE(o.positions.rotary);
  EXPECT_EQ(o.positions.rotary_base, 12345.678901234567);
  EXPECT_TRUE(o.residual.after_norm);
  EXPECT_TRUE(o.residual.fp32);
  EXPECT_TRUE(o.vocabulary.padded_in_softmax);
  EXPECT_EQ(o.residual.dropout, 0.2f);
  EXPECT_EQ(o.init.std, 0.1 / 3);
  EXPECT_NE(complaint(R"({"num_layers":1})").find("hidden_size is missing"), std::string::npos);
}

// A model of the family's own defaults.
ModelOptions model_of(const Family& family) {
  ModelOptions o;
  o.family = family.name;
  family.defaults(o);
  o.num_layers = 4;
  o.hidden_size = 48;
  o.attention.num_heads = 6;
  o.vocabulary.size = 77;
  o.positions.max_length = 33;
  return o;
}

TEST(Record, AFamilyIsANameOfAStructure) {
  const auto blocks = find_family("gpt").blocks;
  int decoders = 0;
  for (const Family* family : families()) {
    ModelOptions own = model_of(*family), same = own;
    same.family = "gpt";
    same.extra.reset();
    if (family->blocks != blocks) {
      EXPECT_EQ(model_differences(same, own),
                std::vector<std::string>{
                    concat("family: gpt here, ", family->name, " in the checkpoint")});
      continue;
    }
    ++decoders;
    for (const bool untied : {false, true}) {
      own.vocabulary.untied = same.vocabulary.untied = untied;
      EXPECT_TRUE(model_differences(same, own).empty()) << family->name;
      EXPECT_TRUE(model_differences(own, same).empty()) << family->name;
      same.vocabulary.untied = !untied;
      EXPECT_EQ(model_differences(same, own).size(), 1u) << family->name;
    }
    same = own;
    same.family = "gpt";
    same.norm.epsilon *= 2;
    EXPECT_EQ(model_differences(own, same).size(), 1u) << family->name;
  }
  EXPECT_EQ(decoders, 9);
}

TEST(Record, WhatHasNoEffectIsNoDifference) {
  ModelOptions here = model_of(find_family("llama")), stored = here;
  here.positions.learned = false;
  here.positions.max_length = 2048;
  here.positions.scaling.factor = 3;  // of a kind that is none
  here.moe.interval = 7;              // of experts that are not there
  here.moe.topk = 2;
  here.attention.window_layers = {4};
  EXPECT_TRUE(model_differences(here, stored).empty());

  stored = model_of(find_family("mixtral"));
  here = stored;
  here.family = "gpt";
  here.moe.num_experts = {8, 8, 8, 8};
  here.moe.min_capacity = 9;  // of experts that drop no tokens
  here.mlp.ffn = 512;         // of MLPs that are not there
  here.moe.ffn = completed(stored).mlp.ffn;
  here.moe.loss_coefficient = 0.5;
  EXPECT_TRUE(model_differences(here, stored).empty());
  here.moe.dense_layers = {2};
  EXPECT_FALSE(model_differences(here, stored).empty());
}

TEST(Record, DifferencesAreOfWhatIsComputed) {
  ModelOptions here = small_model();
  here.positions.rotary = true;
  here.mlp.kind = MlpKind::swiglu;
  ModelOptions stored = here;
  stored.residual.dropout = 0.5f;
  stored.init.std = 1;
  EXPECT_TRUE(model_differences(here, stored).empty());
  stored.norm.epsilon = 1e-6f;
  stored.positions.rotary_base = 500;
  EXPECT_EQ(model_differences(here, stored),
            (std::vector<std::string>{
                "layernorm-epsilon: 1e-05 here, 1e-06 in the checkpoint",
                "rotary-position-embeddings-theta: 10000 here, 500 in the checkpoint"}));
}

}  // namespace
}  // namespace bloomery
