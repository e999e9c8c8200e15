// One folder, one line of steps.
#include "checkpoint/timeline.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/file_lock.h"
#include "base/temporary_folder.h"
#include "checkpoint/checkpoint_case.h"

namespace bloomery {
namespace {

using Names = std::vector<std::string>;

class Timeline : public ::testing::Test {
 protected:
  Timeline() {
    for (const int step : {10, 20, 30}) {
      save_step(path(), step);
    }
    std::ofstream(path() / "metrics.jsonl") << "rows";
  }
  const std::filesystem::path& path() const { return folder_.path(); }

  const TestFolder folder_;
  const Log log_{0, 1, LogLevel::error};
};

TEST_F(Timeline, ARunGoesOnFromItsOwnFolderAlone) {
  const CheckpointReader here(path() / "step-20");
  EXPECT_EQ(own_step(path(), &here), 20);
  EXPECT_EQ(own_step(path() / "." / "", &here), 20);
  EXPECT_EQ(own_step(path(), nullptr), kNoStep);
  EXPECT_EQ(own_step(path() / "absent", &here), kNoStep);
  const TestFolder other;
  EXPECT_EQ(own_step(other.path(), &here), kNoStep);
}

TEST_F(Timeline, LaterStepsAreRefusedWithAWayOut) {
  for (const std::int64_t own : {kNoStep, std::int64_t{0}, std::int64_t{20}}) {
    try {
      refuse_later_steps(path(), own);
      ADD_FAILURE() << own;
    } catch (const Error& error) {
      const std::string text = error.what();
      for (const char* part : {"step-30", "--save", "--load", "--fork"}) {
        EXPECT_NE(text.find(part), std::string::npos) << text;
      }
    }
    EXPECT_THROW(CheckpointWriter(path(), single_rank_group(), {.own_step = own}), Error);
  }
  refuse_later_steps(path(), 30);
  const CheckpointWriter writer(path(), single_rank_group(), {.own_step = 30});
}

TEST_F(Timeline, AForkKeepsWhatWasThere) {
  set_later_steps_aside(path(), 30, log_);
  EXPECT_EQ(visible_names(path()), (Names{"metrics.jsonl", "step-10", "step-20", "step-30"}));
  set_later_steps_aside(path(), 10, log_);
  EXPECT_EQ(visible_names(path()), (Names{"earlier-1", "metrics.jsonl", "step-10"}));
  EXPECT_EQ(visible_names(path() / "earlier-1"), (Names{"metrics.jsonl", "step-20", "step-30"}));
  EXPECT_TRUE(holds_step(*find_newest(path() / "earlier-1", nullptr, log_), 30));
  // A run that starts from nothing leaves nothing of the other in its place.
  set_later_steps_aside(path(), kNoStep, log_);
  EXPECT_EQ(visible_names(path()), (Names{"earlier-1", "earlier-2"}));
  EXPECT_EQ(visible_names(path() / "earlier-2"), (Names{"metrics.jsonl", "step-10"}));
  refuse_later_steps(path(), kNoStep);
}

TEST_F(Timeline, NothingMovesWhileAnotherProcessSaves) {
  const auto lock = FileLock::try_lock(path() / kSaveLock);
  EXPECT_THROW(set_later_steps_aside(path(), 10, log_), Error);
  EXPECT_EQ(visible_names(path()), (Names{"metrics.jsonl", "step-10", "step-20", "step-30"}));
}

}  // namespace
}  // namespace bloomery
