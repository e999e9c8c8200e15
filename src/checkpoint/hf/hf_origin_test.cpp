#include "checkpoint/hf/hf_origin.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace bloomery {
namespace {

using Json = nlohmann::json;

const char* const kExport =
    R"({"model_type":"bert","vocab_size":9,"bos_token_id":null,"eos_token_id":2,)"
    R"("torch_dtype":"bfloat16","id2label":{"0":"LABEL_0","1":"LABEL_1"},)"
    R"("label2id":{"LABEL_0":0,"LABEL_1":1}})";
const char* const kOrigin =
    R"({"model_type":"bert","vocab_size":8,"bos_token_id":5,"eos_token_id":[4,2],)"
    R"("problem_type":"regression","dtype":"float32","classifier_dropout":0.3,"summary":{"a":[1]},"rope_theta":1,)"
    R"("id2label":{"0":"no","1":"yes"},"transformers_version":"4"})";

Json merged(const std::string& origin) { return Json::parse(with_origin(kExport, origin)); }

TEST(HfOrigin, KeysThatAreNotOursComeBack) {
  const Json found = merged(kOrigin);
  EXPECT_EQ(found.value("classifier_dropout", 0.0), 0.3);
  EXPECT_EQ(found.value("summary", Json()), Json::parse(R"({"a":[1]})"));
  EXPECT_EQ(found["vocab_size"], 9);  // ours counts
  for (const char* key : {"dtype", "rope_theta", "transformers_version"}) {
    EXPECT_FALSE(found.contains(key)) << key;
  }
  Json other = Json::parse(kOrigin);
  other["model_type"] = "roberta";
  EXPECT_FALSE(merged(other.dump()).contains("summary"));
  EXPECT_EQ(with_origin(kExport, ""), kExport);
  EXPECT_EQ(with_origin(kExport, "[broken"), kExport);
}

TEST(HfOrigin, TokenIdsThatWeDoNotKnowComeBack) {
  EXPECT_EQ(merged(kOrigin)["bos_token_id"], 5);
  EXPECT_EQ(merged(kOrigin)["eos_token_id"], Json({4, 2}));
  EXPECT_EQ(merged(R"({"eos_token_id":[4,5]})")["eos_token_id"], 2);  // of another tokenizer
  const Json generation = Json::parse(with_origin_ids(R"({"eos_token_id":4})", kOrigin));
  EXPECT_EQ(generation, Json::parse(R"({"bos_token_id":5,"eos_token_id":[4,2]})"));
}

TEST(HfOrigin, ClassesKeepTheirNames) {
  EXPECT_EQ(merged(kOrigin)["id2label"], Json::parse(R"({"0":"no","1":"yes"})"));
  EXPECT_EQ(merged(kOrigin)["label2id"], Json::parse(R"({"no":0,"yes":1})"));
  EXPECT_EQ(merged(R"({"id2label":{"0":"of","1":"another","2":"task"}})")["id2label"]["0"],
            "LABEL_0");
}

TEST(HfOrigin, ATaskNamesTheClasses) {
  const std::vector<std::string_view> names = {"false", "true"};
  for (const std::string origin : {kOrigin, ""}) {
    EXPECT_EQ(merged(tuned_origin(origin, names))["label2id"],
              Json::parse(R"({"false":0,"true":1})"));
  }
  EXPECT_EQ(merged(tuned_origin(kOrigin, names)).value("classifier_dropout", 0.0), 0.3);
  EXPECT_EQ(merged(kOrigin).value("problem_type", ""), "regression");
  EXPECT_FALSE(merged(tuned_origin(kOrigin, {})).contains("problem_type"));  // of another task
  EXPECT_EQ(tuned_origin("", {}), "");
}

TEST(HfOrigin, TravelsInACheckpoint) {
  RunState state;
  EXPECT_EQ(hf_origin(state), "");
  set_hf_origin(state, "");
  EXPECT_TRUE(state.extra.empty());
  set_hf_origin(state, kOrigin);
  EXPECT_EQ(hf_origin(state), kOrigin);
}

}  // namespace
}  // namespace bloomery
