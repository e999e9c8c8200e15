// Storage that fails is no damage: nothing older is taken for it, and what passes is waited for.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <fstream>
#include <system_error>
#include <thread>

#include "checkpoint/checkpoint_case.h"
#include "comm/threads.h"

namespace bloomery {
namespace {

using namespace std::chrono_literals;

constexpr Patience kBrief{.tries = 3, .first_pause = 1ms};
const Log kQuiet(0, 1, LogLevel::error);

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Gives `failures` errors of the kind, one at each open or read of a file, then the bytes.
class Storage {
 public:
  Storage(int error, int failures, std::string only = "")
      : error_(error), failures_(failures), only_(std::move(only)) {}

  int asked() const { return asked_; }
  OpenBytes open() {
    return [this](const std::filesystem::path& path) -> std::unique_ptr<const ReadableBytes> {
      fail("open", path);
      return std::make_unique<File>(*this, open_stored_file(path));
    };
  }

 private:
  class File final : public ReadableBytes {
   public:
    File(Storage& storage, std::unique_ptr<const ReadableBytes> file)
        : storage_(storage), file_(std::move(file)) {}
    const std::string& name() const override { return file_->name(); }
    std::uint64_t size() const override { return file_->size(); }
    void read(std::uint64_t offset, void* to, std::size_t bytes) const override {
      storage_.fail("read", file_->name());
      file_->read(offset, to, bytes);
    }

   private:
    Storage& storage_;
    std::unique_ptr<const ReadableBytes> file_;
  };

  void fail(const char* action, const std::filesystem::path& path) {
    const std::string what = concat(action, " ", path.string());
    asked_ += contains(what, only_) ? 1 : 0;
    if (contains(what, only_) && failures_-- > 0) {
      throw std::system_error(error_, std::generic_category(), "cannot " + what);
    }
  }

  const int error_;
  std::atomic<int> failures_, asked_ = 0;
  const std::string only_;
};

constexpr int kErrors[] = {EMFILE, EIO, ESTALE, EACCES};

class StorageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const int step : {1, 2}) {
      save_step(folder_.path(), step, {.file = {.block_bytes = 4096}});
    }
  }
  std::optional<CheckpointReader> newest(const OpenBytes& open) {
    return find_newest(folder_.path(), &pool_, kQuiet, open);
  }

  TestFolder folder_;
  ThreadPool pool_{2};
};

TEST_F(StorageTest, PassingErrorsAreWaitedFor) {
  for (const int error : kErrors) {
    Storage storage(error, 2);
    EXPECT_TRUE(holds_step(*newest(patiently(storage.open(), kBrief)), 2)) << error;
  }
}

// Each of the first accesses may be the one that fails: of the manifest, of a file, of a block.
TEST_F(StorageTest, LastingErrorsAreNoReasonToTakeAnOlderOne) {
  for (const int error : kErrors) {
    for (const char* only : {"step-2/manifest.json", "step-2/rank-0.safetensors", "step-2"}) {
      Storage storage(error, 1'000'000, only);
      try {
        newest(patiently(storage.open(), kBrief));
        ADD_FAILURE() << "an older checkpoint was taken";
      } catch (const std::system_error& failure) {
        EXPECT_EQ(failure.code().value(), error);
        EXPECT_TRUE(contains(failure.what(), "nothing was moved")) << failure.what();
        EXPECT_TRUE(contains(failure.what(), only)) << failure.what();
        const std::string code = ": " + failure.code().message();
        EXPECT_FALSE(contains(failure.what(), code + code)) << failure.what();
      }
    }
  }
}

TEST_F(StorageTest, WhatIsMissingIsDamage) {
  std::filesystem::remove(folder_.path() / "step-2" / "rank-0.safetensors");
  EXPECT_TRUE(holds_step(*newest(open_input_file), 1));
  EXPECT_THROW(CheckpointReader(folder_.path() / "step-2"), DamagedFile);
}

// A dead disk is asked patiently once, not for every block.
TEST_F(StorageTest, PatienceIsUsedUpOnce) {
  Storage storage(EIO, 1'000'000, "read " + (folder_.path() / "step-2/rank-0").string());
  const CheckpointReader reader(folder_.path() / "step-2",
                                patiently(storage.open(), {.tries = 3, .first_pause = 20ms}));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_GT(reader.problems(pool_).size(), 1u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 1s);
  EXPECT_LT(storage.asked(), 100);
}

TEST_F(StorageTest, VerifyTellsErrorsOfTheStorageFromDamage) {
  const std::filesystem::path step = folder_.path() / "step-2";
  std::fstream(step / "rank-0.safetensors", std::ios::in | std::ios::out).seekp(5000) << "other";
  EXPECT_THROW(CheckpointReader(step).verify(pool_), DamagedFile);
  Storage storage(EIO, 1, "read " + (step / "rank-0").string());
  const CheckpointReader reader(step, storage.open());
  EXPECT_THROW(reader.verify(pool_), std::system_error);
  EXPECT_THROW(reader.verify(pool_), DamagedFile);  // it has passed
}

// Nothing is removed on the word of a disk that does not answer.
TEST_F(StorageTest, NothingIsPrunedMeanwhile) {
  Storage storage(EIO, 1'000'000, "step-2/manifest.json");
  EXPECT_THROW(to_prune(folder_.path(), {.last = 2}, nullptr, 2, storage.open()),
               std::system_error);
}

TEST_F(StorageTest, OtherRanksSeeWhatTheFirstSees) {
  const std::filesystem::path step = folder_.path() / "step-2";
  EXPECT_TRUE(holds_step(open_as_others(step, kBrief), 2));
  // A mount that is stale: the folder is not there yet, and comes while this rank waits.
  const std::filesystem::path away = folder_.path() / "away";
  std::filesystem::rename(step, away);
  EXPECT_THROW(open_as_others(step, kBrief), std::system_error);
  std::thread late([&] {
    std::this_thread::sleep_for(20ms);
    std::filesystem::rename(away, step);
  });
  EXPECT_TRUE(holds_step(open_as_others(step, {.tries = 12, .first_pause = 1ms}), 2));
  late.join();
  // Its reads are patient like those of the first rank, and what lasts is not waited for twice.
  Storage passing(ESTALE, 2), lasting(ESTALE, 1'000'000);
  EXPECT_TRUE(holds_step(open_as_others(step, kBrief, patiently(passing.open(), kBrief)), 2));
  EXPECT_THROW(open_as_others(step, kBrief, patiently(lasting.open(), kBrief)), std::runtime_error);
  EXPECT_EQ(lasting.asked(), kBrief.tries);
  std::filesystem::remove(step / "rank-0.safetensors");
  EXPECT_THROW(open_as_others(step, kBrief), std::system_error);
}

// As many ranks as a large run has save; a process may hold fewer files open.
TEST(StoredFile, ACheckpointMayHaveMoreFilesThanAProcessMayOpen) {
  constexpr int kRanks = 90;
  const TestFolder folder;
  run_ranks(kRanks, [&](int rank, std::unique_ptr<Communicator> world) {
    CheckpointWriter writer(folder.path(), save_group(world->host()), {.file = {.num_threads = 1}});
    writer.save(flat_snapshot(1, rank, kRanks));
    EXPECT_TRUE(writer.finish()->committed);
  });
  struct rlimit before {};
  getrlimit(RLIMIT_NOFILE, &before);
  const struct rlimit few { .rlim_cur = 80, .rlim_max = before.rlim_max };
  setrlimit(RLIMIT_NOFILE, &few);
  ThreadPool pool(2);
  const auto reader = find_newest(folder.path(), &pool, kQuiet);
  setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_TRUE(reader);
  EXPECT_TRUE(holds_step(*reader, 1));
}

}  // namespace
}  // namespace bloomery
