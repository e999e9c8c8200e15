// The monitors of DeepSpeed's configuration in a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "apps/pretrain/run_case.h"

namespace bloomery {
namespace {

class MonitorRun : public ::testing::Test, public RunCase {};

TEST_F(MonitorRun, DoesWhatDeepspeedsMonitorsAreFor) {
  std::ofstream(at("ds.json")) << R"({"wall_clock_breakdown": true,
    "csv_monitor": {"enabled": true, "output_path": ")" +
                                      at("csv") + R"(", "job_name": "job"},
    "tensorboard": {"enabled": true, "output_path": ")" +
                                      at("tb") + R"(", "job_name": "job"},
    "comms_logger": {"enabled": true, "verbose": true},
    "flops_profiler": {"enabled": true, "profile_step": 2}})";
  const Outcome outcome = train(
      "--train-iters 4 --log-throughput --eval-interval 2 --eval-iters 1 --ranks-as-threads 2 "
      "--micro-batch-size 1 --deepspeed --deepspeed_config " +
      at("ds.json") + saved_in("run"));
  ASSERT_EQ(outcome.code, kFinished) << outcome.errors;
  for (const char* part :
       {"    forward-compute ......", "flops profiler, iteration 2:", "of both: output head",
        "throughput per GPU (TFLOP/s/GPU): ", "communication"}) {
    EXPECT_TRUE(outcome.says(part)) << part << "\n" << outcome.out;
  }
  EXPECT_TRUE(std::filesystem::exists(at("run") + "/trace.json"));
  std::ifstream file(at("csv") + "/job/Train_Samples_train_loss.csv");
  const std::string csv{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(csv.starts_with("step,train_loss\r\n")) << csv;
  EXPECT_EQ(std::ranges::count(csv, '\n'), 5) << csv;
  EXPECT_TRUE(std::filesystem::exists(at("csv") + "/job/Train_Samples_eval_loss.csv"));
  EXPECT_TRUE(
      std::filesystem::exists(at("csv") + "/job/Train_Samples_elapsed_time_ms_forward.csv"));
  EXPECT_FALSE(std::filesystem::is_empty(at("tb") + "/job"));
}

}  // namespace
}  // namespace bloomery
