// Damage of every kind is seen, and resuming falls back to what is good.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "checkpoint/checkpoint_case.h"

namespace bloomery {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void overwrite(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

bool loads(const std::filesystem::path& checkpoint, ThreadPool& pool) {
  try {
    CheckpointReader(checkpoint).verify(pool);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Small blocks, so that the last of several is hit too.
TEST(Damage, EveryBitFlipAndTruncationIsSeen) {
  const TestFolder folder;
  save_step(folder.path(), 1, {.file = {.block_bytes = 4096}});
  const std::filesystem::path checkpoint = folder.path() / "step-1";
  ThreadPool pool(1);
  std::mt19937 random(5);
  int rounds = 0;
  for (const char* name : {"manifest.json", "rank-0.safetensors"}) {
    const std::string good = read_file(checkpoint / name);
    for (int round = 0; round < 200; ++round, ++rounds) {
      std::string bad = good;
      const std::size_t at = random() % good.size();
      if (round % 4 == 3) {
        bad.resize(at);
      } else {
        bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
      }
      overwrite(checkpoint / name, bad);
      EXPECT_FALSE(loads(checkpoint, pool)) << name << " byte " << at << " round " << round;
      // Reading all tensors without a check before finds it too, unless it is in the header, which
      // is not needed for that.
      if (round % 4 != 3 && at > 4096 && name[0] == 'r') {
        EXPECT_THROW(holds_step(CheckpointReader(checkpoint), 1), Error);
      }
    }
    overwrite(checkpoint / name, good + "x");
    EXPECT_FALSE(loads(checkpoint, pool));
    overwrite(checkpoint / name, good);
    EXPECT_TRUE(loads(checkpoint, pool));
  }
  EXPECT_EQ(rounds, 400);
}

TEST(Damage, ProblemsNameFileAndBlock) {
  const TestFolder folder;
  save_step(folder.path(), 1, {.file = {.block_bytes = 4096}});
  const std::filesystem::path file = folder.path() / "step-1" / "rank-0.safetensors";
  std::string bytes = read_file(file);
  bytes[5000] ^= 1;
  overwrite(file, bytes);
  ThreadPool pool(2);
  const auto problems = CheckpointReader(folder.path() / "step-1").problems(pool);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_TRUE(contains(problems[0], "rank-0.safetensors: damaged: block 1 of ")) << problems[0];
  bytes[5000] ^= 1;
  overwrite(file, bytes);
  overwrite(folder.path() / "step-1" / "notes.txt", "mine");
  const auto strange = CheckpointReader(folder.path() / "step-1").problems(pool);
  ASSERT_EQ(strange.size(), 1u);
  EXPECT_TRUE(contains(strange[0], "notes.txt is not in the manifest")) << strange[0];
}

TEST(Damage, TheNewestGoodOneIsFound) {
  const TestFolder folder;
  ThreadPool pool(2);
  const Log log(0, 1, LogLevel::error);
  EXPECT_FALSE(find_newest(folder.path() / "absent", &pool, log));
  EXPECT_FALSE(find_newest(folder.path(), &pool, log));
  for (const char* other : {"step-9.tmp-12", "step-007", "step-", "step-x", "tensorboard"}) {
    std::filesystem::create_directory(folder.path() / other);
  }
  EXPECT_FALSE(find_newest(folder.path(), &pool, log));
  std::filesystem::remove_all(folder.path() / "step-9.tmp-12");
  for (const int step : {2, 10, 9}) {
    save_step(folder.path(), step);
  }
  EXPECT_EQ(find_newest(folder.path(), &pool, log)->state().step, 10);
  const std::filesystem::path file = folder.path() / "step-10" / "rank-0.safetensors";
  std::string bytes = read_file(file);
  bytes.back() ^= 4;
  overwrite(file, bytes);
  EXPECT_EQ(find_newest(folder.path(), nullptr, log)->state().step, 10);
  EXPECT_EQ(find_newest(folder.path(), &pool, log)->state().step, 9);
  std::filesystem::remove(folder.path() / "step-9" / "manifest.json");
  EXPECT_TRUE(holds_step(*find_newest(folder.path(), &pool, log), 2));
  std::filesystem::rename(folder.path() / "step-2", folder.path() / "step-3");
  EXPECT_THROW(find_newest(folder.path(), &pool, log), Error);  // step 2 under a wrong name
  std::filesystem::rename(folder.path() / "step-3", folder.path() / "best");
  EXPECT_TRUE(holds_step(*find_newest(folder.path() / "best", &pool, log), 2));
  EXPECT_THROW(find_newest(folder.path(), &pool, log), Error);
}

std::vector<std::int64_t> steps_in(const std::filesystem::path& folder) {
  std::vector<std::int64_t> steps;
  for (const CheckpointEntry& entry : list_checkpoints(folder)) {
    steps.push_back(entry.step);
  }
  return steps;
}

TEST(Prune, KeepsTheLastGoodOnesAndEveryNth) {
  const TestFolder folder;
  CheckpointWriter writer(folder.path(), single_rank_group(), {.keep = {.last = 2, .every = 4}});
  for (int step = 1; step <= 9; ++step) {
    writer.save(flat_snapshot(step));
    EXPECT_TRUE(writer.finish()->committed);
  }
  EXPECT_EQ(steps_in(folder.path()), (std::vector<std::int64_t>{4, 8, 9}));
  std::filesystem::remove(folder.path() / "step-9" / "manifest.json");
  writer.save(flat_snapshot(10));  // 8 and 10 are the last two good ones
  writer.save(flat_snapshot(11));
  EXPECT_EQ(steps_in(folder.path()), (std::vector<std::int64_t>{4, 8, 10, 11}));
  // Steps behind the one that was just saved are not its run's: they neither count nor go.
  writer.save(flat_snapshot(9));
  writer.save(flat_snapshot(5));
  EXPECT_EQ(steps_in(folder.path()), (std::vector<std::int64_t>{4, 5, 8, 9, 10, 11}));
  EXPECT_THROW(check_keep({.last = 1}), Error);
  EXPECT_TRUE(to_prune(folder.path(), {}, nullptr).empty());
}

}  // namespace
}  // namespace bloomery
