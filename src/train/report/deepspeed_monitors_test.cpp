#include "train/report/deepspeed_monitors.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temporary_folder.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

IterationReport step_at(std::int64_t samples, double loss) {
  IterationReport r;
  r.iteration = samples / 8;
  r.consumed_samples = samples;
  r.losses = {{"lm loss", loss}, {"moe loss", 1}};
  r.learning_rate = 1e-5;
  return r;
}

TEST(DeepspeedMonitors, ATableForEachNameThatGoesOn) {
  const TemporaryFolder folder;
  const fs::path csv = folder.path() / "out" / "job";
  const auto run = [&](std::int64_t samples, double loss) {
    DeepspeedMonitors monitors({.csv = csv}, 1e9, {});
    IterationReport report = step_at(samples, loss);
    monitors.step(report, 1e9);
    report = step_at(samples + 8, loss / 2);
    report.loss_scale = 4096;
    monitors.step(report, 1e9);
    monitors.evaluation({.iteration = 2, .losses = {{"lm loss", 2.5}}}, samples + 8, 1e9);
    monitors.timers({{"forward-compute", {1.5, 3}}, {"batch-generator", {1}}, {"optimizer", {0}}},
                    samples + 8, 1e9);
    monitors.flush();
  };
  run(8, 10.5);
  EXPECT_EQ(visible_names(csv),
            (std::vector<std::string>{"Train_Samples_elapsed_time_ms_forward.csv",
                                      "Train_Samples_eval_loss.csv", "Train_Samples_loss_scale.csv",
                                      "Train_Samples_lr.csv", "Train_Samples_train_loss.csv"}));
  const auto text = [&](const char* name) { return read_file(csv / name); };
  EXPECT_EQ(text("Train_Samples_train_loss.csv"), "step,train_loss\r\n8,10.5\r\n16,5.25\r\n");
  EXPECT_EQ(text("Train_Samples_lr.csv"), "step,lr\r\n8,1e-05\r\n16,1e-05\r\n");
  EXPECT_EQ(text("Train_Samples_loss_scale.csv"), "step,loss_scale\r\n16,4096.0\r\n");
  EXPECT_EQ(text("Train_Samples_eval_loss.csv"), "step,eval_loss\r\n16,2.5\r\n");
  EXPECT_EQ(text("Train_Samples_elapsed_time_ms_forward.csv"),
            "step,elapsed_time_ms_forward\r\n16,3.0\r\n");
  run(24, 1);
  EXPECT_EQ(text("Train_Samples_train_loss.csv"),
            "step,train_loss\r\n8,10.5\r\n16,5.25\r\n24,1.0\r\n32,0.5\r\n");
}

TEST(DeepspeedMonitors, EventsHaveTheSameNames) {
  const TemporaryFolder folder;
  DeepspeedMonitors monitors({.tensorboard = folder.path() / "events"}, 1e9, {});
  monitors.step(step_at(8, 10.5), 1e9);
  monitors.flush();
  EXPECT_EQ(visible_names(folder.path()), std::vector<std::string>{"events"});
  const std::string bytes = read_file(fs::directory_iterator(folder.path() / "events")->path());
  EXPECT_NE(bytes.find("Train/Samples/train_loss"), bytes.npos);
  EXPECT_NE(bytes.find("Train/Samples/lr"), bytes.npos);
}

}  // namespace
}  // namespace bloomery
