#include <gtest/gtest.h>

#include <iostream>
#include <regex>
#include <sstream>

#include "apps/bench/models.h"
#include "apps/common/command_case.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "models/model.h"

namespace bloomery {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(BenchTrain, Profiles) {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "trace.json";
  const Outcome outcome =
      run_command({"bench", "train", "--device", "cpu", "--size", "10M", "--micro-batch-size", "1",
                   "--seq-length", "32", "--steps", "1", "--recompute", "--profile", path});
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(contains(outcome.out, "where the time went, mean of 3 steps\n")) << outcome.out;
  for (const char* row :
       {"linear +forward ", "linear +backward ", "linear +recompute ", "adam +optimizer "}) {
    EXPECT_TRUE(std::regex_search(outcome.out, std::regex(row))) << row << '\n' << outcome.out;
  }
  EXPECT_TRUE(read_file(path).starts_with("{\"displayTimeUnit\"")) << path;

  const Outcome nowhere =
      run_command({"bench", "train", "--device", "cpu", "--profile", path + "/inside"});
  EXPECT_EQ(nowhere.code, 2) << nowhere.out;
}

TEST(BenchTrain, MeasuresOncePerLine) {
  std::istringstream requests("\n\n");
  std::streambuf* const before = std::cin.rdbuf(requests.rdbuf());
  const Outcome outcome =
      run_command({"bench", "train", "--device", "cpu", "--size", "10M", "--micro-batch-size", "1",
                   "--seq-length", "32", "--steps", "1", "--on-request"});
  std::cin.rdbuf(before);
  std::cin.clear();
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(std::regex_match(
      outcome.out, std::regex("ready\n(bloomery .* 1 x 32 tokens: .*tokens/s, .*\n){2}")))
      << outcome.out;
}

// As many as the models of these names have, where those are published.
TEST(BenchTrain, HasTheModelsThatItNames) {
  const auto parameters = [](const char* name) {
    ModelOptions options = bench_model(name).options;
    options.positions.max_length = 1024;
    return num_parameters(completed(options));
  };
  EXPECT_EQ(parameters("qwen2.5-1.5B"), 1'543'714'304);
  EXPECT_EQ(parameters("qwen2.5-7B"), 7'615'616'512);
  EXPECT_EQ(parameters("llama-7B"), 6'738'415'616);
  EXPECT_EQ(parameters("124M"), 124'475'904);  // with 47 tokens of padding
  EXPECT_NEAR(static_cast<double>(parameters("llama-1.6B")), 1.64e9, 0.01e9);
  EXPECT_NEAR(static_cast<double>(parameters("1.7B")), 1.65e9, 0.05e9);
  EXPECT_NEAR(static_cast<double>(parameters("3.6B")), 3.57e9, 0.05e9);
  EXPECT_NEAR(static_cast<double>(parameters("7.5B")), 7.46e9, 0.05e9);
}

TEST(BenchTrain, SaysTheFloorOfAStep) {
  const Outcome outcome = run_command({"bench",
                                       "train",
                                       "--device",
                                       "cpu",
                                       "--size",
                                       "10M",
                                       "--dtype",
                                       "bf16",
                                       "--micro-batch-size",
                                       "1",
                                       "--seq-length",
                                       "32",
                                       "--gradient-accumulation-steps",
                                       "2",
                                       "--steps",
                                       "1",
                                       "--ceilings",
                                       "--floor-seconds",
                                       "1e-3",
                                       "--peak-tflops",
                                       "0.1"});
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  std::smatch found;
  ASSERT_TRUE(std::regex_search(
      outcome.out, found,
      std::regex(R"(floor ([\d.]+) ms \(products ([\d.]+), attention ([\d.]+), bytes ([\d.]+): )"
                 R"([\d.]+ GB at \d+ GB/s\), step ([\d.]+) ms, floor / step ([\d.]+)\n)")))
      << outcome.out;
  const auto number = [&](int i) { return std::stod(found.str(static_cast<std::size_t>(i))); };
  EXPECT_NEAR(number(1), number(2) + number(3) + number(4), 0.02);
  EXPECT_NEAR(number(6), number(1) / number(5), 0.01);
  for (const char* line :
       {"2 x 1 x 32 tokens: \\d+ tokens/s, .* MFU [\\d.]+ %", "\n  1152x384x32 tn bf16 to fp32 +6 ",
        "\n  1152x384x32 tn bf16 to fp32, added +6 ",
        "\n  forward 1x32x32, 6 heads of 64, 6 groups, bf16, causal +12 ",
        "\n  optimizer: gradients, weights, state +1 ",
        "\nlinear +backward +[\\d.]+ +[\\d.]+% +[\\d.]+ +[\\d.]+%\n"}) {
    EXPECT_TRUE(std::regex_search(outcome.out, std::regex(line))) << line << '\n' << outcome.out;
  }
}

}  // namespace
}  // namespace bloomery
