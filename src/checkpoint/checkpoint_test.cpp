// Saving and loading, under one layout and another, and what is left when a save cannot be.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <set>

#include "base/temporary_folder.h"
#include "base/temporary_name.h"
#include "checkpoint/checkpoint_case.h"
#include "checkpoint/host_staging.h"
#include "comm/threads.h"
#include "device/device.h"

namespace bloomery {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Checkpoint, RoundTripOfOneRank) {
  const TestFolder folder(TestFolder::Where::disk);
  const SaveOutcome outcome = save_step(folder.path(), 7);
  EXPECT_TRUE(outcome.committed) << outcome.message;
  EXPECT_EQ(outcome.message, "");
  EXPECT_EQ(outcome.folder, folder.path() / "step-7");
  EXPECT_EQ(visible_names(folder.path()), std::vector<std::string>{"step-7"});
  EXPECT_EQ(visible_names(folder.path() / "step-7"),
            (std::vector<std::string>{"manifest.json", "rank-0.safetensors"}));
  const CheckpointReader reader(folder.path() / "step-7");
  EXPECT_EQ(outcome.bytes, reader.manifest().file_bytes());
  EXPECT_TRUE(holds_step(reader, 7));
  ThreadPool pool(2);
  EXPECT_EQ(reader.problems(pool), std::vector<std::string>{});
}

TEST(Checkpoint, TheSameBytesEachTime) {
  const TestFolder a(TestFolder::Where::disk), b;
  save_step(a.path(), 3);
  save_step(b.path(), 3, {.file = {.num_threads = 1, .direct = false}});
  for (const char* name : {"manifest.json", "rank-0.safetensors"}) {
    EXPECT_EQ(read_file(a.path() / "step-3" / name), read_file(b.path() / "step-3" / name));
  }
}

// Saved by several ranks under one layout, read in random boxes: small blocks, so that boxes cross
// them and many are seen in part first.
TEST(Checkpoint, AnyLayoutReadsAnyOther) {
  std::mt19937 random(4);
  for (const int ranks : {1, 2, 4}) {
    for (const bool columns : {false, true}) {
      const TestFolder folder;
      run_ranks(ranks, [&](int rank, std::unique_ptr<Communicator> world) {
        CheckpointWriter writer(folder.path(), save_group(world->host()),
                                {.asynchronous = true, .file = {.block_bytes = 4096}});
        writer.save(columns ? column_snapshot(5, rank, ranks) : flat_snapshot(5, rank, ranks));
        const auto outcome = writer.finish();
        EXPECT_TRUE(outcome && outcome->committed) << outcome->message;
      });
      const CheckpointReader reader(folder.path() / "step-5");
      for (int round = 0; round < 50; ++round) {
        for (const auto& [name, tensor] : test_tensors()) {
          Box box = Box::whole(tensor.shape);
          for (int i = 0; i < tensor.shape.rank() && tensor.shape.numel() > 0; ++i) {
            box.offset[i] =
                static_cast<std::int64_t>(random() % static_cast<unsigned>(tensor.shape[i]));
            box.extent[i] =
                1 + static_cast<std::int64_t>(
                        random() % static_cast<unsigned>(tensor.shape[i] - box.offset[i]));
          }
          const std::size_t size = size_of(tensor.dtype);
          std::vector<std::byte> found(static_cast<std::size_t>(box.extent.numel()) * size);
          reader.read(name, box, found);
          ASSERT_EQ(found, part_of(test_bytes(name, 5), box, size)) << name;
        }
      }
      EXPECT_TRUE(holds_step(reader, 5));
      ThreadPool pool(2);
      EXPECT_EQ(reader.problems(pool), std::vector<std::string>{});
    }
  }
}

TEST(Checkpoint, StageCopiesAndKeepsItsMemory) {
  const TestFolder folder;
  Device device;
  Stream stream(device);
  std::vector<float> values(60);
  HostStaging stage(stream);
  stage.add_range("x", DType::fp32, Box::whole({10, 6}), 0, 25, values.data());
  stage.add_range("x", DType::fp32, Box::whole({10, 6}), 25, 35, values.data() + 25);
  stage.reserve();
  // A disk that takes its time, so that the next save comes before the last has ended.
  const SaveGroup slow{.gather = [](const std::string& mine) {
    usleep(10'000);
    return std::vector<std::string>{mine};
  }};
  CheckpointWriter writer(folder.path(), slow, {.asynchronous = true});
  std::set<const void*> memory;
  for (int step = 1; step <= 3; ++step) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(static_cast<int>(i) * step);
    }
    writer.save([&] {
      Snapshot snapshot = stage.take(test_state(step));
      memory.insert(snapshot.pieces.front().data);
      return snapshot;
    });
    std::ranges::fill(values, -1.0f);  // training goes on
  }
  EXPECT_EQ(memory.size(), 1u);
  for (int step = 1; step <= 3; ++step) {
    ASSERT_TRUE(writer.finish()->committed);
    std::vector<float> found(60);
    CheckpointReader(folder.path() / step_name(step))
        .read("x", Box::whole({10, 6}), std::as_writable_bytes(std::span(found)));
    EXPECT_EQ(found[59], static_cast<float>(59 * step));
  }
  EXPECT_FALSE(writer.poll());
}

TEST(Checkpoint, WhatCannotBeReadIsNamed) {
  const TestFolder folder;
  save_step(folder.path(), 1);
  const CheckpointReader reader(folder.path() / "step-1");
  std::vector<std::byte> bytes(52 * 16 * 2);
  EXPECT_THROW(reader.read("absent", Box::whole({52, 16}), bytes), Error);
  EXPECT_THROW(reader.read("embedding/value", Box::whole({26, 32}), bytes), Error);
  EXPECT_THROW(reader.read("embedding/master", Box::whole({52, 16}), bytes), Error);
  Box outside = Box::whole({52, 16});
  outside.offset[0] = 1;
  EXPECT_THROW(reader.read("embedding/value", outside, bytes), Error);
}

// Whatever was under the name, good or damaged, is kept.
TEST(Checkpoint, SavingAStepAgainMovesTheOtherAside) {
  const TestFolder folder(TestFolder::Where::disk);
  save_step(folder.path(), 4);
  std::filesystem::resize_file(folder.path() / "step-4" / "manifest.json", 10);
  for (const char* aside : {"earlier-1", "earlier-2"}) {
    const SaveOutcome outcome = save_step(folder.path(), 4);
    EXPECT_TRUE(outcome.committed);
    EXPECT_TRUE(contains(outcome.message, aside)) << outcome.message;
  }
  EXPECT_TRUE(holds_step(CheckpointReader(folder.path() / "step-4"), 4));
  EXPECT_TRUE(holds_step(CheckpointReader(folder.path() / "earlier-2" / "step-4"), 4));
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "earlier-1/step-4/manifest.json"), 10u);
  EXPECT_EQ(visible_names(folder.path()),
            (std::vector<std::string>{"earlier-1", "earlier-2", "step-4"}));
}

TEST(Checkpoint, OneProcessSavesInAFolder) {
  const TestFolder folder;
  EXPECT_THROW(CheckpointWriter("/proc/nowhere", single_rank_group(), {}), Error);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const CheckpointWriter writer(folder.path(), single_rank_group(), {});
    _exit(write(ends[1], "!", 1) == 1 ? pause() : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  close(ends[0]);
  close(ends[1]);
  try {
    CheckpointWriter(folder.path(), single_rank_group(), {});
    ADD_FAILURE() << "two processes save in one folder";
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), concat("process ", child, " on "))) << error.what();
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const CheckpointWriter writer(folder.path(), single_rank_group(), {});
  EXPECT_THROW(CheckpointWriter(folder.path(), single_rank_group(), {}), Error);
}

// A process of this machine that has ended leaves rubbish; another machine's may be at work.
TEST(Checkpoint, OnlyRubbishIsRemoved) {
  const TestFolder folder;
  std::string mine = temporary_name(folder.path() / "step-3").filename().string();
  const pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  const std::string process = std::to_string(getpid());
  mine.replace(mine.find(process), process.size(), std::to_string(child));
  const std::string theirs = mine + "-elsewhere";
  std::filesystem::create_directory(folder.path() / mine);
  std::filesystem::create_directory(folder.path() / theirs);
  EXPECT_TRUE(save_step(folder.path(), 3).committed);
  EXPECT_EQ(visible_names(folder.path()), (std::vector<std::string>{"step-3", theirs}));
  EXPECT_EQ(remove_leftovers(folder.path()), std::vector<std::string>{theirs});
}

TEST(Checkpoint, CarriesFilesAndChecksThem) {
  const TestFolder folder(TestFolder::Where::disk);
  Snapshot snapshot = flat_snapshot(2);
  const std::string text(10'000, 't');
  snapshot.files = std::make_shared<const std::vector<SnapshotFile>>(
      std::vector<SnapshotFile>{{"vocab.json", text}, {"merges.txt", ""}});
  CheckpointWriter writer(folder.path(), single_rank_group(), {.file = {.block_bytes = 4096}});
  writer.save(snapshot);
  const auto outcome = writer.finish();
  ASSERT_TRUE(outcome->committed) << outcome->message;
  ThreadPool pool(2);
  const std::filesystem::path step = folder.path() / "step-2";
  const CheckpointReader reader(step);
  EXPECT_TRUE(holds_step(reader, 2));
  EXPECT_EQ(reader.problems(pool), std::vector<std::string>{});
  EXPECT_EQ(reader.read_file("vocab.json"), text);
  EXPECT_EQ(reader.read_file("merges.txt"), "");
  EXPECT_THROW(reader.read_file("tokenizer.json"), Error);
  std::fstream(step / "vocab.json", std::ios::in | std::ios::out).seekp(5000) << "x";
  EXPECT_THROW(CheckpointReader(step).read_file("vocab.json"), Error);
  EXPECT_EQ(CheckpointReader(step).problems(pool).size(), 1u);
}

TEST(Checkpoint, PiecesThatDoNotCoverAreRefused) {
  const TestFolder folder;
  CheckpointWriter writer(folder.path(), single_rank_group(), {});
  Snapshot snapshot = flat_snapshot(1, 0, 2);  // the other half is missing
  writer.save(snapshot);
  const auto outcome = writer.finish();
  EXPECT_FALSE(outcome->committed);
  EXPECT_TRUE(contains(outcome->message, "do not cover it exactly once")) << outcome->message;
  EXPECT_EQ(visible_names(folder.path()), std::vector<std::string>{});
}

// One rank cannot write: every rank hears why, nothing remains, and the next save succeeds.
TEST(Checkpoint, AFailureOfOneRankIsEveryones) {
  const TestFolder folder;
  run_ranks(3, [&](int rank, std::unique_ptr<Communicator> world) {
    CheckpointWriter writer(folder.path(), save_group(world->host()), {});
    Snapshot broken = flat_snapshot(1, rank, 3);
    if (rank == 1) {
      broken.pieces.push_back(broken.pieces[0]);
      broken.pieces.back().dtype = DType::int32;
    }
    writer.save(std::move(broken));
    const auto outcome = writer.finish();
    EXPECT_FALSE(outcome->committed);
    EXPECT_TRUE(contains(outcome->message, "disagree")) << outcome->message;
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "step-1"));
    writer.save(flat_snapshot(2, rank, 3));
    EXPECT_TRUE(writer.finish()->committed);
  });
  EXPECT_EQ(visible_names(folder.path()), std::vector<std::string>{"step-2"});
}

// A file-size limit ends the write in the middle, as a quota does.
TEST(Checkpoint, AWriteThatFindsNoRoomLeavesNothing) {
  const TestFolder folder(TestFolder::Where::disk);
  save_step(folder.path(), 1);
  struct rlimit before {};
  getrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, SIG_IGN);
  for (const bool direct : {false, true}) {
    const struct rlimit small { .rlim_cur = 2000, .rlim_max = before.rlim_max };
    setrlimit(RLIMIT_FSIZE, &small);
    const SaveOutcome outcome = save_step(folder.path(), 2, {.file = {.direct = direct}});
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_FALSE(outcome.committed);
    EXPECT_TRUE(contains(outcome.message, "bytes are needed")) << outcome.message;
    EXPECT_EQ(visible_names(folder.path()), std::vector<std::string>{"step-1"});
  }
  ::signal(SIGXFSZ, SIG_DFL);
  EXPECT_TRUE(save_step(folder.path(), 2).committed);
}

TEST(Checkpoint, AFullDiskIsToldWithNumbers) {
  const TestFolder folder;
  if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=100k") != 0) {
    GTEST_SKIP() << "mounting a small file system needs more rights than this process has";
  }
  std::int64_t step = 1;
  SaveOutcome outcome = save_step(folder.path(), step);
  for (; outcome.committed && step < 20; outcome = save_step(folder.path(), ++step)) {
  }
  EXPECT_FALSE(outcome.committed);
  EXPECT_GE(step, 2);
  EXPECT_TRUE(contains(outcome.message, " bytes are needed, ")) << outcome.message;
  EXPECT_TRUE(contains(outcome.message, " are free")) << outcome.message;
  EXPECT_EQ(visible_names(folder.path()).size(), static_cast<std::size_t>(step - 1));
  EXPECT_TRUE(holds_step(CheckpointReader(folder.path() / step_name(step - 1)), step - 1));
  umount(folder.path().c_str());
}

}  // namespace
}  // namespace bloomery
