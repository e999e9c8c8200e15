#include "checkpoint/model_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <regex>

#include "base/temporary_folder.h"

namespace bloomery {
namespace {

// No field has its default value, so that one that is forgotten is noticed.
ModelOptions unusual_model() {
  ModelOptions o;
  o.num_layers = 3;
  o.hidden_size = 48;
  o.attention.num_heads = 6;
  o.attention.num_groups = 2;
  o.attention.head_dim = 16;
  o.mlp.ffn = 40;
  o.vocabulary.size = 77;
  o.vocabulary.divisible_by = 8;
  o.positions.max_length = 33;
  o.norm = {.kind = NormKind::rms, .epsilon = 3e-7f, .one_plus_gain = true};
  o.activation = Activation::silu;
  o.gated = true;
  o.bias = false;
  o.vocabulary.untied = true;
  o.positions.rotary = true;
  o.positions.rotary_fraction = 0.25;
  o.positions.rotary_base = 12345.678901234567;
  o.positions.rotary_interleaved = true;
  o.residual.after_norm = true;
  o.residual.fp32 = true;
  o.vocabulary.padded_in_softmax = true;
  o.attention.dropout = 0.1f;
  o.residual.dropout = 0.2f;
  o.init.std = 0.1 / 3;
  o.init.xavier = true;
  o.recompute = {.method = RecomputeOptions::Method::block, .num_layers = 2};
  return o;
}

TokenizerOptions unusual_tokenizer() {
  return {.path = "a \"path\"/é",
          .type = "GPT2BPETokenizer",
          .vocab_file = "v",
          .merge_file = "m",
          .tokenizer_model = "t",
          .vocab_size = 5,
          .vocab_extra_ids = 6,
          .pattern = "p"};
}

std::string complaint(const std::string& json) {
  try {
    gpt_options_from_json(json, "here");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The text with the value of one member replaced.
std::string with(const std::string& text, const std::string& key, const std::string& value) {
  const std::regex member("\"" + key + "\":[^,}]*");
  return std::regex_replace(text, member, "\"" + key + "\":" + value);
}

TEST(ModelRecord, EveryFieldOfTheModelComesBackExactly) {
  const ModelOptions back = gpt_options_from_json(to_json(unusual_model()), "here");
  EXPECT_EQ(back.num_layers, 3);
  EXPECT_EQ(back.hidden_size, 48);
  EXPECT_EQ(back.attention.num_heads, 6);
  EXPECT_EQ(back.attention.num_groups, 2);
  EXPECT_EQ(back.attention.head_dim, 16);
  EXPECT_EQ(back.mlp.ffn, 40);
  EXPECT_EQ(back.vocabulary.size, 77);
  EXPECT_EQ(back.vocabulary.divisible_by, 8);
  EXPECT_EQ(back.positions.max_length, 33);
  EXPECT_EQ(back.norm.kind, NormKind::rms);
  EXPECT_EQ(back.norm.epsilon, 3e-7f);
  EXPECT_TRUE(back.norm.one_plus_gain);
  EXPECT_EQ(back.activation, Activation::silu);
  EXPECT_TRUE(back.gated);
  EXPECT_FALSE(back.bias);
  EXPECT_FALSE(back.tied);
  EXPECT_EQ(back.positions, PositionKind::rotary);
  EXPECT_EQ(back.positions.rotary_fraction, 0.25);
  EXPECT_EQ(back.positions.rotary_base, 12345.678901234567);
  EXPECT_TRUE(back.positions.rotary_interleaved);
  EXPECT_TRUE(back.residual.after_norm);
  EXPECT_TRUE(back.residual.fp32);
  EXPECT_TRUE(back.vocabulary.padded_in_softmax);
  EXPECT_EQ(back.attention.dropout, 0.1f);
  EXPECT_EQ(back.residual.dropout, 0.2f);
  EXPECT_EQ(back.init.std, 0.1 / 3);
  EXPECT_TRUE(back.init.xavier);
  EXPECT_EQ(back.recompute.method, RecomputeOptions::Method::block);
  EXPECT_EQ(back.recompute.num_layers, 2);
}

// A new member of the structure must be added to the record: it would be lost silently.
TEST(ModelRecord, TheStructureHasTheSizeThatTheListOfFieldsWasMadeFor) {
  EXPECT_EQ(sizeof(ModelOptions), 152u);
  EXPECT_EQ(sizeof(TokenizerOptions), 6 * sizeof(std::string) + 16);
}

TEST(ModelRecord, EveryFieldOfTheTokenizerComesBack) {
  const TokenizerOptions back = tokenizer_options_from_json(to_json(unusual_tokenizer()), "here");
  EXPECT_EQ(back.path, "a \"path\"/é");
  EXPECT_EQ(back.type, "GPT2BPETokenizer");
  EXPECT_EQ(back.vocab_file, "v");
  EXPECT_EQ(back.merge_file, "m");
  EXPECT_EQ(back.tokenizer_model, "t");
  EXPECT_EQ(back.vocab_size, 5);
  EXPECT_EQ(back.vocab_extra_ids, 6);
  EXPECT_EQ(back.pattern, "p");
}

TEST(ModelRecord, NamesTheMemberThatIsWrong) {
  const std::string good = to_json(ModelOptions());
  EXPECT_EQ(complaint(good), "");
  const std::pair<const char*, const char*> cases[] = {
      {"num_layers", "3000000000"}, {"num_layers", "-1"},
      {"num_layers", "2.0"},        {"hidden_size", "\"8\""},
      {"vocabulary", "1e99"},       {"norm", "\"batch\""},
      {"norm_epsilon", "1e999"},    {"norm_epsilon", "1e60"},
      {"activation", "3"},          {"tied", "1"},
      {"positions", "\"learnt\""},  {"init_std", "null"},
      {"recompute_method", "[[]]"}, {"hidden_dropout", "\"x\""}};
  for (const auto& [key, value] : cases) {
    const std::string text = complaint(with(good, key, value));
    EXPECT_TRUE(text.starts_with("here: ")) << key << ": " << text;
    const bool is_json = std::string_view(value) != "1e999";
    EXPECT_EQ(text.find(key) != std::string::npos, is_json) << key << ": " << text;
  }
  EXPECT_EQ(complaint(R"({"num_layers":1})"), "here: lacks hidden_size");
  EXPECT_NE(complaint(good.substr(0, good.size() - 1) + R"(,"new":1})").find("has new"),
            std::string::npos);
  EXPECT_NE(complaint(good.substr(0, good.size() - 1)).find("not valid JSON"), std::string::npos);
  EXPECT_EQ(complaint("[]"), "here: not a JSON object");
  EXPECT_EQ(complaint(std::string(100000, '[')), "here: nested too deeply");
}

TEST(ModelRecord, RefusesWhatCannotBeBuilt) {
  const std::string good = to_json(ModelOptions());
  EXPECT_NE(complaint(with(good, "num_heads", "7")).find("attention heads"), std::string::npos);
  EXPECT_NE(complaint(with(good, "make_vocabulary_divisible_by", "0")).find("divisible_by"),
            std::string::npos);
  ModelOptions bad;
  bad.init.std = std::numeric_limits<double>::infinity();
  EXPECT_THROW(to_json(bad), Error);
}

TEST(ModelRecord, StateHoldsAllOfIt) {
  const TemporaryFolder folder;
  const auto file = folder.file("vocab.json", "{}");
  RunState state;
  state.extra["other"] = "stays";
  TokenizerOptions tokenizer{.path = std::filesystem::relative(file).string(), .type = "no/file"};
  set_model_record(state, {unusual_model(), tokenizer, DType::bf16});
  const ModelRecord back = model_record(state, "here");
  EXPECT_EQ(back.model.vocabulary.size, 77);
  ASSERT_TRUE(back.tokenizer);
  EXPECT_EQ(back.tokenizer->path, file.string());
  EXPECT_EQ(back.tokenizer->type, "no/file");
  EXPECT_EQ(back.dtype, DType::bf16);
  EXPECT_EQ(state.extra.at("other"), "stays");

  set_model_record(state, {ModelOptions(), std::nullopt, DType::fp16});
  EXPECT_EQ(state.extra.at("tokenizer"), "{}");
  EXPECT_FALSE(model_record(state, "here").tokenizer);
  EXPECT_THROW(set_model_record(state, {ModelOptions(), std::nullopt, DType::fp64}), Error);
}

TEST(ModelRecord, ACheckpointOfSomethingElseIsNamed) {
  RunState state;
  EXPECT_THROW(model_record(state, "here"), Error);
  set_model_record(state, {});
  state.extra["dtype"] = "int8";
  try {
    model_record(state, "here");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "here: dtype is 'int8', not fp32, bf16 or fp16");
  }
}

TEST(ModelRecord, TokenIdsWhereThereAreSome) {
  RunState state;
  EXPECT_EQ(token_ids(state, "here"), HfTokenIds());
  const HfTokenIds ids{.bos = 3, .eos = std::nullopt, .pad = 4};
  set_token_ids(state, ids);
  EXPECT_EQ(token_ids(state, "here"), ids);
  state.extra["token_ids"] = R"({"bos":1,"eos":-2,"pad":null})";
  EXPECT_THROW(token_ids(state, "here"), Error);
}

TEST(ModelRecord, DifferencesAreOfWhatIsComputed) {
  const ModelOptions here = unusual_model();
  ModelOptions stored = here;
  stored.residual.dropout = 0;
  stored.recompute = {};
  stored.init.std = 1;
  EXPECT_TRUE(model_differences(here, stored).empty());
  stored.norm.epsilon = 1e-5f;
  stored.positions.rotary_base = 10000;
  stored.gated = false;
  EXPECT_EQ(model_differences(here, stored),
            (std::vector<std::string>{"norm_epsilon: 3e-07 here, 1e-05 in the checkpoint",
                                      "gated: true here, false in the checkpoint",
                                      "rotary_base: 12345.7 here, 10000 in the checkpoint"}));
}

TEST(ModelRecord, NamesOfMoments) {
  EXPECT_EQ(exp_avg_name("final_norm.gain"), "final_norm.gain/exp_avg");
  EXPECT_EQ(exp_avg_sq_name("final_norm.gain"), "final_norm.gain/exp_avg_sq");
  EXPECT_TRUE(is_moment_name(exp_avg_name("a")));
  EXPECT_TRUE(is_moment_name(exp_avg_sq_name("a")));
  EXPECT_FALSE(is_moment_name("blocks.0.norm_1.gain"));
}

}  // namespace
}  // namespace bloomery
