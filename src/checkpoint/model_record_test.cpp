#include "checkpoint/model_record.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/temporary_folder.h"

namespace bloomery {
namespace {

ModelOptions small_model() {
  ModelOptions o;
  o.num_layers = 3;
  o.hidden_size = 48;
  o.attention.num_heads = 6;
  o.vocabulary.size = 77;
  o.positions.max_length = 33;
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

// A new member of the structure must be added to the record: it would be lost silently.
TEST(ModelRecord, TheStructureHasTheSizeThatTheListOfFieldsWasMadeFor) {
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

// The next option of tokenizers must not make the checkpoints of today unreadable.
TEST(ModelRecord, FieldsOfTheTokenizerThatAnOlderProgramDidNotKnowHaveDefaults) {
  const TokenizerOptions back = tokenizer_options_from_json(R"({"path":"x"})", "here");
  EXPECT_EQ(back.path, "x");
  EXPECT_EQ(back.vocab_size, 0);
  for (const char* text : {R"({"path":1})", R"({"vocab_size":-1})", R"({"vocab_size":"1"})",
                           R"({"path":"x","newer":1})", "[]", "{"}) {
    EXPECT_THROW(tokenizer_options_from_json(text, "here"), Error) << text;
  }
}

TEST(ModelRecord, StateHoldsAllOfIt) {
  const TemporaryFolder folder;
  const auto file = folder.file("vocab.json", "{}");
  RunState state;
  state.extra["other"] = "stays";
  TokenizerOptions tokenizer{.path = std::filesystem::relative(file).string(), .type = "no/file"};
  set_model_record(state, {small_model(), tokenizer, DType::bf16});
  const ModelRecord back = model_record(state, "here");
  EXPECT_EQ(back.model.vocabulary.size, 77);
  ASSERT_TRUE(back.tokenizer);
  EXPECT_EQ(back.tokenizer->path, file.string());
  EXPECT_EQ(back.tokenizer->type, "no/file");
  EXPECT_EQ(back.dtype, DType::bf16);
  EXPECT_EQ(state.extra.at("other"), "stays");

  set_model_record(state, {small_model(), std::nullopt, DType::fp16});
  EXPECT_EQ(state.extra.at("tokenizer"), "{}");
  EXPECT_FALSE(model_record(state, "here").tokenizer);
  EXPECT_THROW(set_model_record(state, {small_model(), std::nullopt, DType::fp64}), Error);
}

TEST(ModelRecord, ACheckpointOfSomethingElseIsNamed) {
  RunState state;
  EXPECT_THROW(model_record(state, "here"), Error);
  set_model_record(state, {.model = small_model()});
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

TEST(ModelRecord, NamesOfState) {
  EXPECT_EQ(state_name("final_norm.gain", Adam::kState[0]), "final_norm.gain/exp_avg");
  EXPECT_EQ(state_name("final_norm.gain", Adam::kState[1]), "final_norm.gain/exp_avg_sq");
}

}  // namespace
}  // namespace bloomery
