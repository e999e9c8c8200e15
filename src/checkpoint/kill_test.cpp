// A process that saves and prunes without pause is killed at random moments: the newest committed
// checkpoint is good, nothing temporary is taken for one, and the next process cleans up.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <random>

#include "checkpoint/checkpoint_case.h"

namespace bloomery {
namespace {

// Saves step after step and says so after each commit; ends only by a signal.
[[noreturn]] void save_for_ever(const std::filesystem::path& folder, std::int64_t step, int report,
                                bool asynchronous) {
  try {
    CheckpointWriter writer(folder, single_rank_group(),
                            {.asynchronous = asynchronous, .keep = {.last = 2, .every = 50}});
    while (true) {
      writer.save(flat_snapshot(step));
      const auto outcome = writer.finish();
      if (!outcome->committed || write(report, &step, sizeof step) != sizeof step) {
        _exit(3);
      }
      ++step;
    }
  } catch (...) {
    _exit(4);
  }
}

int rounds() {
  const char* text = std::getenv("BLOOMERY_KILLS");
  return text != nullptr ? std::atoi(text) : 5;
}

TEST(Kill, TheNewestCommittedStepSurvives) {
  const TestFolder folder;
  std::mt19937 random(6);
  ThreadPool pool(1);
  std::int64_t committed = 0;
  for (int round = 0; round < rounds(); ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      save_for_ever(folder.path(), committed + 1, ends[1], round % 2 == 1);
    }
    close(ends[1]);
    const auto first = static_cast<ssize_t>(read(ends[0], &committed, sizeof committed));
    ASSERT_EQ(first, static_cast<ssize_t>(sizeof committed));
    usleep(static_cast<useconds_t>(random() % 60'000));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "exit code " << WEXITSTATUS(status);
    while (read(ends[0], &committed, sizeof committed) == sizeof committed) {
    }
    close(ends[0]);

    const auto newest = find_newest(folder.path(), &pool, Log());
    ASSERT_TRUE(newest);
    // The commit may have happened without the message.
    EXPECT_TRUE(newest->state().step == committed || newest->state().step == committed + 1)
        << newest->state().step << " after " << committed;
    committed = newest->state().step;
    EXPECT_TRUE(holds_step(*newest, committed));
    for (const CheckpointEntry& entry : list_checkpoints(folder.path())) {
      EXPECT_EQ(open_checkpoint(entry).problems(pool), std::vector<std::string>{});
    }
  }
  // What the last kill left goes with the next save.
  EXPECT_TRUE(save_step(folder.path(), committed + 1).committed);
  for (const auto& item : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(item.path().filename().string().find("tmp"), std::string::npos) << item.path();
  }
}

// Pruning alone, killed: each checkpoint is whole or gone, and the newest two are whole.
TEST(Kill, PruningLeavesWholeCheckpoints) {
  std::mt19937 random(7);
  ThreadPool pool(1);
  for (int round = 0; round < rounds(); ++round) {
    const TestFolder folder;
    for (int step = 1; step <= 6; ++step) {
      save_step(folder.path(), step, {.file = {.num_threads = 1}});
    }
    const pid_t child = fork();
    if (child == 0) {
      for (const CheckpointEntry& entry : to_prune(folder.path(), {.last = 2}, nullptr)) {
        remove_folder(entry.folder);
      }
      _exit(0);
    }
    usleep(static_cast<useconds_t>(random() % 3'000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const auto entries = list_checkpoints(folder.path());
    ASSERT_GE(entries.size(), 2u);
    for (const CheckpointEntry& entry : entries) {
      EXPECT_TRUE(holds_step(open_checkpoint(entry), entry.step));
    }
    EXPECT_EQ(entries.back().step, 6);
    EXPECT_EQ(entries[entries.size() - 2].step, 5);
  }
}

}  // namespace
}  // namespace bloomery
