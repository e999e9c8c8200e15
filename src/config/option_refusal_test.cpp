// Options of features that do not exist, flags that may stand alone, and switches said to be off.
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/option_table.h"

namespace bloomery {
namespace {

enum class Precision { fp32, fp16 };

struct Fixture : testing::Test {
  Precision precision = Precision::fp32;
  std::string profile;
  OptionTable table;

  Fixture() {
    table
        .add("precision", precision, "Type of the parameters.",
             {{"fp32", Precision::fp32}, {"fp16", Precision::fp16}})
        .shorthand("fp16", "fp16")
        .shorthand("fp32", "fp32")
        .deepspeed("fp16.enabled", "fp16");
    table.add_choice("profile", profile, "Trace.", {"pt", "pt-full"}).alone("pt");
    table.refuse("num-experts", {"1"}, "mixtures of experts do not exist yet");
    table.refuse("kd", {}, "distillation does not exist yet");
    table.refuse("lazy", {"False"}, "nothing is lazy");
    table.refuse_deepspeed("curriculum_learning", "enabled", {"false"}, "no curriculum yet");
    table.refuse_deepspeed("zero_optimization.offload_optimizer", "device", {"none"}, "no offload");
  }
  std::string error() {
    try {
      table.finish();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(Fixture, RefusedFlagsAreNamedWithTheReason) {
  table.read_flags({"--num-experts", "64", "32"});
  EXPECT_EQ(error(), "--num-experts 64 32 is refused: mixtures of experts do not exist yet");
}

TEST_F(Fixture, RefusedFlagsAreNotSuggested) {
  table.read_flags({"--num-expert", "2", "--precisoin", "fp16"});
  const std::string text = error();
  EXPECT_EQ(text.find("num-experts"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean --precision?"), std::string::npos) << text;
}

TEST(OptionNames, OfOtherProgramsLeadToOurs) {
  std::int64_t layers = 0, length = 0, batch = 0;
  double hidden = 0, attention = 0;
  OptionTable table;
  table.add("num-layers", layers, "");
  table.add("seq-length", length, "");
  table.add("micro-batch-size", batch, "");
  table.add("hidden-dropout", hidden, "");
  table.add("attention-dropout", attention, "");
  table.refuse("batch-size", {}, "its name is --micro-batch-size");
  table.read_flags(
      {"--n_layer", "3", "--block-size", "64", "--dropout", "0.1", "--max-steps", "9"});
  table.read_json(R"({"n_layer": 2})", "run.json");
  const std::string expected[] = {
      "unknown option --n_layer; here it is --num-layers",
      "unknown option --block-size; here it is --seq-length",
      "unknown option --dropout; here it is --hidden-dropout and --attention-dropout",
      "unknown option --max-steps\n",  // this command has nothing of the kind
      "unknown option n_layer in run.json; here it is num-layers"};
  try {
    table.finish();
    FAIL();
  } catch (const Error& error) {
    for (const std::string& line : expected) {
      EXPECT_NE(std::string(error.what()).find(line), std::string::npos) << error.what();
    }
  }
}

TEST_F(Fixture, ShorthandsOfDifferentWordsContradictEachOther) {
  table.read_flags({"--fp16", "--fp32"});
  EXPECT_TRUE(error().find("--fp16 = fp16 and --fp32 = fp32 contradict") != std::string::npos);
}

TEST_F(Fixture, BareRefusedFlag) {
  table.read_flags({"--kd"});
  EXPECT_EQ(error(), "--kd is refused: distillation does not exist yet");
}

TEST_F(Fixture, HarmlessWordsPassWithoutANote) {
  table.read_flags({"--num-experts", "1.0", "--lazy=false", "--num-experts", "1"});
  EXPECT_EQ(error(), "");
  EXPECT_TRUE(table.notes().empty());
}

TEST_F(Fixture, RefusedRowsAreInNoListing) {
  EXPECT_EQ(table.names(), (std::vector<std::string>{"precision", "profile"}));
  EXPECT_EQ(table.help().find("num-experts"), std::string::npos);
  EXPECT_EQ(table.text().find("num-experts"), std::string::npos);
  EXPECT_EQ(table.json().find("num-experts"), std::string::npos);
}

TEST_F(Fixture, RefusedDeepspeedPaths) {
  table.read_deepspeed(R"({"curriculum_learning": {"enabled": true, "min_difficulty": 8},
                           "zero_optimization": {"offload_optimizer": {"device": "cpu"}}})",
                       "ds.json");
  EXPECT_EQ(table.problems(),
            (std::vector<std::string>{
                "curriculum_learning.enabled = true in ds.json is refused: no curriculum yet",
                "zero_optimization.offload_optimizer.device = cpu in ds.json is refused: no "
                "offload"}));
}

TEST_F(Fixture, DeepspeedPathsThatAreSwitchedOff) {
  table.read_deepspeed(R"({"curriculum_learning": {"enabled": false, "min_difficulty": 8},
                           "zero_optimization": {"offload_optimizer": {"device": "none"}}})",
                       "ds.json");
  EXPECT_EQ(error(), "");
}

TEST_F(Fixture, AFlagThatMayStandAlone) {
  table.read_flags({"--profile", "--fp16"});
  EXPECT_EQ(error(), "");
  EXPECT_EQ(profile, "pt");
  EXPECT_EQ(precision, Precision::fp16);
}

TEST_F(Fixture, AFlagThatMayStandAloneStillTakesAValue) {
  table.read_flags({"--profile", "pt-full"});
  EXPECT_EQ(error(), "");
  EXPECT_EQ(profile, "pt-full");
}

TEST_F(Fixture, ASwitchThatIsOffContradictsItsFlag) {
  table.read_flags({"--fp16"});
  table.read_deepspeed(R"({"fp16": {"enabled": false}})", "ds.json");
  EXPECT_EQ(error(),
            "--fp16 and fp16.enabled in ds.json = false contradict each other: keep one of them");
}

TEST_F(Fixture, ASwitchThatIsOffIsNoContradictionWhereAnotherEntryCounts) {
  Precision precision = Precision::fp32;
  OptionTable own;
  own.add("precision", precision, "Type of the parameters.",
          {{"fp32", Precision::fp32}, {"fp16", Precision::fp16}})
      .shorthand("fp16", "fp16")
      .deepspeed("fp16.enabled", "fp16")
      .deepspeed("fp32.enabled", "fp32")
      .deepspeed_wins();
  own.read_flags({"--fp16"});
  own.read_deepspeed(R"({"fp16": {"enabled": false}, "fp32": {"enabled": true}})", "ds.json");
  own.finish();
  EXPECT_EQ(precision, Precision::fp32);
  EXPECT_EQ(own.notes(),
            std::vector<std::string>{"fp32.enabled in ds.json = fp32 overrules --fp16 = fp16"});
  own.read_deepspeed(R"({"fp16": {"enabled": true}})", "other.json");
  EXPECT_EQ(own.problems().size(), 1u);  // two configurations
}

TEST(FlagWins, OverADeepspeedConfiguration) {
  std::optional<std::int64_t> batch;
  OptionTable table;
  table.add("batch", batch, "").deepspeed("train_batch").flag_wins();
  table.read_flags({"--batch", "3"});
  table.read_deepspeed(R"({"train_batch": 4})", "ds.json");
  table.finish();
  EXPECT_EQ(batch, 3);
  EXPECT_EQ(table.notes(),
            std::vector<std::string>{"--batch = 3 overrules train_batch in ds.json = 4"});
}

TEST_F(Fixture, ASwitchThatIsOffSaysNothingOfOtherWords) {
  table.read_deepspeed(R"({"fp16": {"enabled": false}})", "ds.json");
  EXPECT_EQ(error(), "");
  EXPECT_EQ(precision, Precision::fp32);
}

}  // namespace
}  // namespace bloomery
