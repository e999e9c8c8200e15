// Runs that go on: for longer, from their own folder, or not at all.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/pretrain/run_case.h"
#include "base/file.h"

namespace bloomery {
namespace {

using Json = nlohmann::json;

class ExtendedRun : public ::testing::Test, public RunCase {
 protected:
  // With what the log says among the errors.
  Outcome train_and_listen(const std::string& more) const {
    testing::internal::CaptureStderr();
    Outcome outcome = train(more);
    outcome.errors += testing::internal::GetCapturedStderr();
    return outcome;
  }
  // Iterations of a run of four that goes on to eight.
  std::size_t extended(const std::string& more) {
    outcome_ = train_and_listen("--train-iters 8 --load " + at("run") + " " + more);
    return losses(outcome_.out).size();
  }

  Outcome outcome_;
};

TEST_F(ExtendedRun, IsOneFlagThatSaysWhatChanges) {
  ASSERT_EQ(train("--train-iters 4 --min-lr 0.001" + saved_in("run")).code, kFinished);
  EXPECT_EQ(extended("--min-lr 0.001"), 0u);
  EXPECT_EQ(outcome_.code, kBadInput);
  EXPECT_TRUE(outcome_.says("give --extend")) << outcome_.errors;

  EXPECT_EQ(extended("--min-lr 0.001 --extend"), 4u) << outcome_.errors;
  EXPECT_TRUE(outcome_.says("goes on to iteration 8")) << outcome_.out;
  EXPECT_TRUE(outcome_.says("instead of 0.001")) << outcome_.out;
  EXPECT_TRUE(outcome_.says("samples of decay: 16 here, 8 in the checkpoint")) << outcome_.out;
  EXPECT_FALSE(outcome_.says("the training samples differ")) << outcome_.out;

  EXPECT_EQ(extended("--min-lr 0.001 --extend hold"), 4u) << outcome_.errors;
  EXPECT_TRUE(outcome_.says("ends at sample 8; after that the learning rate is 0.001"))
      << outcome_.out;

  EXPECT_EQ(extended("--min-lr 0.001 --lr 0.002 --extend"), 0u);
  EXPECT_EQ(outcome_.code, kBadInput);
  EXPECT_TRUE(outcome_.says("peak learning rate: 0.002 here")) << outcome_.errors;
}

TEST_F(ExtendedRun, AnotherModelIsSaidBeforeAnotherSchedule) {
  ASSERT_EQ(train("--train-iters 4" + saved_in("run")).code, kFinished);
  EXPECT_EQ(extended("--hidden-size 64"), 0u);
  EXPECT_EQ(outcome_.code, kBadInput);
  EXPECT_TRUE(outcome_.says("holds another model")) << outcome_.errors;
}

TEST_F(ExtendedRun, OtherSamplesAreNoticed) {
  ASSERT_EQ(train("--train-iters 4" + saved_in("run")).code, kFinished);
  const Outcome other = train_and_listen("--train-iters 4 --seed 7 --load " + at("run"));
  EXPECT_TRUE(other.says("the training samples differ")) << other.out;
}

TEST_F(ExtendedRun, SavesAtTheEndWithoutAnInterval) {
  Arguments arguments = command("--train-iters 3 --save " + at("run"));
  const auto flag = std::find(arguments.begin(), arguments.end(), "--save-interval");
  arguments.erase(flag, flag + 2);
  ASSERT_EQ(expect_command(arguments).empty(), false);
  EXPECT_EQ(newest("run").state().step, 3);
}

TEST_F(ExtendedRun, ItsOptionsRunItAgain) {
  ASSERT_EQ(train("--train-iters 3 --save " + at("run")).code, kFinished);
  const Json options = Json::parse(read_file(at("run") + "/options.json"));
  EXPECT_EQ(options["train-iters"], 3);
  EXPECT_EQ(options["save"], at("run"));
  EXPECT_FALSE(options.contains("clip-grad"));
  std::ifstream lines(at("run") + "/commands.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const Json start = Json::parse(line);
  EXPECT_EQ(start["command"][1], "pretrain");
  EXPECT_EQ(start["options"], options);

  const Outcome again =
      run_command({"pretrain", "--config", at("run") + "/options.json", "--save", at("again")});
  ASSERT_EQ(again.code, kFinished) << again.errors;
  expect_same_checkpoints("run", "again");
  EXPECT_EQ(Json::parse(read_file(at("again") + "/options.json"))["lr"], options["lr"]);
}

TEST_F(ExtendedRun, ACorpusShorterThanASequenceIsSaidAtOnce) {
  const std::string text = at("short.txt");
  std::ofstream(text) << "The cat sat.\n";
  expect_command({"preprocess", "--input", text, "--output-prefix", at("short"), "--tokenizer",
                  (corpus_folder() / "tokenizer").string()});
  const std::string more = "--train-iters 1 --split 1,0,0 --data-path " + at("short_text_document");
  const Outcome dry = train(more + " --dry-run");
  EXPECT_EQ(dry.code, kFinished) << dry.errors;
  EXPECT_TRUE(dry.says("samples repeat the same text")) << dry.out;
  EXPECT_TRUE(train_and_listen(more).says("samples repeat the same text"));
}

TEST_F(ExtendedRun, DryRunHasThePlanFirstOrAsJson) {
  const Outcome people = train("--train-iters 5 --dry-run");
  EXPECT_TRUE(people.out.starts_with("plan:\n")) << people.out;
  const Json json = Json::parse(train("--train-iters 5 --dry-run --json").out);
  EXPECT_EQ(json["plan"]["iterations"], 5);
  EXPECT_EQ(json["plan"]["global_batch"], 2);
  EXPECT_EQ(json["options"]["lr"], 0.004);
  EXPECT_TRUE(json["notes"].is_array() && json["warnings"].is_array());
}

}  // namespace
}  // namespace bloomery
