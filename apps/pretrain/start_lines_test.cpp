// What a start of `bloomery pretrain` prints: what differs from the defaults, all with -v, nothing
// with -q.
#include <gtest/gtest.h>

#include "apps/pretrain/run_case.h"
#include "base/file.h"

namespace bloomery {
namespace {

class StartLines : public ::testing::Test, public RunCase {
 protected:
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
  }
  static std::size_t arguments(const std::string& text) {
    return all_matches(text, "\n  (\\w+) \\.+ ").size();
  }
};

TEST_F(StartLines, ArgumentsThatDifferFromTheDefaults) {
  const Outcome outcome = train_loudly("--train-iters 1 --save " + at("run"));
  ASSERT_EQ(outcome.code, kFinished) << outcome.errors;
  EXPECT_TRUE(has(outcome.out, "------------------------ arguments ------------------------\n"));
  EXPECT_TRUE(has(outcome.out, "\n  num_layers ...................................... 2\n"))
      << outcome.out;
  EXPECT_FALSE(has(outcome.out, "\n  adam_beta1 ")) << outcome.out;
  EXPECT_LT(arguments(outcome.out), 25u) << outcome.out;
  EXPECT_TRUE(has(outcome.errors, "options keep their defaults: -v prints them")) << outcome.errors;
}

TEST_F(StartLines, AllAreInTheRunsFolderAndPrintedWithV) {
  const Outcome outcome = train("-v --train-iters 1 --save " + at("run"));
  ASSERT_EQ(outcome.code, kFinished) << outcome.errors;
  EXPECT_TRUE(has(outcome.out, "\n  adam_beta1 ...................................... 0.9\n"))
      << outcome.out;
  const std::string file = read_file(at("run/arguments.txt"));
  EXPECT_TRUE(has(outcome.out, file)) << file;
  EXPECT_GT(arguments(file), 200u) << file;
}

TEST_F(StartLines, QuietRunsPrintWarningsAlone) {
  testing::internal::CaptureStderr();
  const Outcome outcome = train("-q --train-iters 2 --save " + at("run"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
  EXPECT_EQ(outcome.out, "");
}

}  // namespace
}  // namespace bloomery
