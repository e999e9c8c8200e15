// Saves of several ranks: slow disks, ranks that fail meanwhile, and what is looked at before.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <functional>

#include "base/temporary_folder.h"
#include "base/temporary_name.h"
#include "checkpoint/checkpoint_case.h"
#include "checkpoint/probe.h"
#include "comm/threads.h"
#include "comm/world.h"

namespace bloomery {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The disk of one rank takes longer than ranks wait for each other elsewhere.
TEST(Save, ASlowDiskIsNoFailure) {
  const TestFolder folder;
  run_ranks(2,
            [&](int rank, std::unique_ptr<Communicator> world) {
              SaveGroup group = save_group(world->host());
              const auto quick = group.gather_at_first;
              group.gather_at_first = [&](std::string mine) {
                usleep(rank == 1 ? 1'300'000 : 0);
                return quick(std::move(mine));
              };
              CheckpointWriter writer(folder.path(), group, {.asynchronous = true});
              writer.save(flat_snapshot(1, rank, 2));
              EXPECT_FALSE(writer.wait_for(0.001));
              while (world->host().any("saves", !writer.wait_for(0.05))) {
              }
              const auto outcome = writer.poll();
              EXPECT_TRUE(outcome && outcome->committed);
            },
            {.timeout_seconds = 1});
  EXPECT_TRUE(holds_step(CheckpointReader(folder.path() / "step-1"), 1));
}

bool is_committed(const TestFolder& folder, std::int64_t step) {
  return std::filesystem::exists(folder.path() / step_name(step));
}

TEST(Save, WhatIsOnDiskCountsWhoeverFailsThen) {
  const TestFolder folder;
  SaveGroup group = single_rank_group();
  group.gather = [&](const std::string& mine) {
    if (is_committed(folder, 1)) {
      throw RankFailure("rank 1 failed: it is tired", 1, false);
    }
    return std::vector<std::string>{mine};
  };
  CheckpointWriter writer(folder.path(), group, {});
  writer.save(flat_snapshot(1));
  const auto outcome = writer.poll();
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->committed);
  EXPECT_TRUE(contains(outcome->message, "it is tired")) << outcome->message;
}

// A rank that saves alone needs no other, not even to hear that one has failed.
TEST(Save, OneRankAloneGoesOnWhenOthersFail) {
  const TestFolder folder;
  std::atomic<bool> is_alone = false;
  EXPECT_THROW(run_ranks(2,
                         [&](int rank, std::unique_ptr<Communicator> world) {
                           const auto alone = world->split(rank, 0);
                           if (rank == 1) {
                             is_alone.wait(false);  // splitting needs both
                             throw Error("it is tired");
                           }
                           is_alone = true;
                           is_alone.notify_one();
                           while (!world->host().world()->failed()) {
                             usleep(1000);
                           }
                           CheckpointWriter writer(folder.path(), save_group(alone->host()), {});
                           writer.save(flat_snapshot(1));
                         }),
               Error);
  EXPECT_TRUE(is_committed(folder, 1));
}

TEST(Save, TheNewestIsReadBackBeforeOlderOnesGo) {
  const TestFolder folder;
  bool breaks = true;
  SaveGroup group = single_rank_group();
  group.gather = [&](const std::string& mine) {
    if (breaks && is_committed(folder, 3)) {  // the disk gives other bytes than it got
      std::fstream(folder.path() / "step-3" / "rank-0.safetensors", std::ios::in | std::ios::out)
              .seekp(6000)
          << "other bytes";
    }
    return std::vector<std::string>{mine};
  };
  CheckpointWriter writer(folder.path(), group, {.keep = {.last = 2}});
  for (int step = 1; step <= 3; ++step) {
    writer.save(flat_snapshot(step));
  }
  writer.poll();
  writer.poll();
  const auto third = writer.poll();
  EXPECT_TRUE(contains(third->message, "not all removed")) << third->message;
  EXPECT_TRUE(contains(third->message, "damaged: block 0")) << third->message;
  EXPECT_EQ(list_checkpoints(folder.path()).size(), 3u);
  breaks = false;
  writer.save(flat_snapshot(4));
  EXPECT_EQ(writer.poll()->message, "");
  EXPECT_EQ(visible_names(folder.path()), (std::vector<std::string>{"step-3", "step-4"}));
}

std::string probe_error(
    const std::filesystem::path& folder, std::uint64_t bytes,
    const std::function<void(int rank)>& before = [](int) {}) {
  std::string error;
  run_ranks(2, [&](int rank, std::unique_ptr<Communicator> world) {
    SaveGroup group = save_group(world->host());
    const auto gather = group.gather;
    group.gather = [&, gather](const std::string& mine) {
      const auto all = gather(mine);
      before(rank);
      return all;
    };
    try {
      const SaveRoom room = probe_save_folder(folder, group, bytes, {.tries = 1});
      EXPECT_EQ(room.needed, 2 * bytes);
      EXPECT_GT(room.free, 0u);
    } catch (const Error& thrown) {
      if (rank == 0) error = thrown.what();
    }
    world->host().barrier("end");
  });
  EXPECT_EQ(visible_names(folder), std::vector<std::string>()) << "nothing of it stays";
  return error;
}

TEST(Probe, EachRankWritesWhereItWillSave) {
  const TestFolder folder;
  EXPECT_EQ(probe_error(folder.path(), 1000), "");
  // What the first rank has made is not there for the other: its machine has another folder.
  const std::string error = probe_error(folder.path(), 1000, [&](int rank) {
    for (const std::string& name : visible_names(folder.path())) {
      if (rank == 0) std::filesystem::remove_all(folder.path() / name);
    }
  });
  EXPECT_TRUE(contains(error, "of those that save: this machine does not see ")) << error;
  EXPECT_TRUE(contains(error, this_process())) << error;
}

TEST(Probe, OneCheckpointMustHaveRoom) {
  const TestFolder folder;
  const std::string error = probe_error(folder.path(), std::uint64_t{1} << 60);
  EXPECT_TRUE(contains(error, concat("it takes ", std::uint64_t{1} << 61, " bytes"))) << error;
}

}  // namespace
}  // namespace bloomery
