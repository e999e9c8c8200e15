// Runs whose disks are slow, fail or are full. In this program fsync and pread are ours.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/temporary_folder.h"
#include "checkpoint/folder.h"
#include "corpus/indexed_corpus.h"
#include "train/plan/options_case.h"
#include "train/run/pretrain.h"

namespace bloomery {
namespace {

// What happens to the files of ranks.
struct Disk {
  std::atomic<useconds_t> pause = 0;  // of each fsync
  std::atomic<int> fsync_error = 0;   // 0: none
  std::atomic<int> good_syncs = 0;    // before that comes
  std::atomic<int> stale_reads = 0;   // that fail with ESTALE
  std::atomic<int> misreads = 0;      // that give a wrong byte
  std::atomic<int> syncs = 0;
  std::atomic<int> listings = 0;         // of the folder of checkpoints
  std::atomic<int> failing_listing = 0;  // the one that fails with EIO; 0: none
};

Disk& disk() {
  static Disk all;
  return all;
}

bool is_of_a_rank(int descriptor) {
  std::error_code ignored;
  const auto path =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), ignored);
  return path.filename().string().starts_with("rank-") && path.extension() == ".safetensors";
}

}  // namespace
}  // namespace bloomery

using bloomery::disk, bloomery::is_of_a_rank;

extern "C" {

int fsync(int descriptor) {
  static const auto real = reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, "fsync"));
  if (is_of_a_rank(descriptor)) {
    ++disk().syncs;
    usleep(disk().pause);
    if (disk().fsync_error != 0 && disk().syncs > disk().good_syncs) {
      errno = disk().fsync_error;
      return -1;
    }
  }
  return real(descriptor);
}

ssize_t pread(int descriptor, void* to, size_t bytes, off_t offset) {
  static const auto real =
      reinterpret_cast<ssize_t (*)(int, void*, size_t, off_t)>(dlsym(RTLD_NEXT, "pread"));
  if (disk().stale_reads > 0 && is_of_a_rank(descriptor) && disk().stale_reads-- > 0) {
    errno = ESTALE;
    return -1;
  }
  const ssize_t count = real(descriptor, to, bytes, offset);
  if (disk().misreads > 0 && count > 0 && is_of_a_rank(descriptor) && disk().misreads-- > 0) {
    static_cast<char*>(to)[count / 2] ^= 1;
  }
  return count;
}

int openat(int folder, const char* path, int flags, ...) {
  static const auto real =
      reinterpret_cast<int (*)(int, const char*, int, ...)>(dlsym(RTLD_NEXT, "openat"));
  if ((flags & O_DIRECTORY) != 0 && std::filesystem::path(path).filename() == "run" &&
      ++disk().listings == disk().failing_listing) {
    errno = EIO;
    return -1;
  }
  va_list more;
  va_start(more, flags);
  const auto mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return real(folder, path, flags, mode);
}

}  // extern "C"

namespace bloomery {
namespace {

struct Trained {
  std::optional<RunEnd> end;  // none: it threw
  bool mistake = false;       // an Error, which is the user's
  std::string thrown, out, errors;
  bool says(const std::string& text) const {
    return (thrown + out + errors).find(text) != std::string::npos;
  }
};

class DiskFailure : public ::testing::Test {
 protected:
  void TearDown() override {
    disk().pause = 0;
    disk().fsync_error = 0;
    disk().good_syncs = 0;
    disk().stale_reads = 0;
    disk().misreads = 0;
    disk().failing_listing = 0;
  }
  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string corpus(const std::string& name, int documents) const {
    IndexedWriter writer(at(name), TokenType::u16);
    for (int document = 0; document < documents; ++document) {
      writer.add_sequence(std::vector<TokenId>(20, document % 50));
      writer.end_document();
    }
    writer.commit();
    return at(name);
  }

  Trained train(const std::vector<std::string>& more) const {
    std::vector<std::string> flags = {"--num-layers",
                                      "1",
                                      "--hidden-size",
                                      "16",
                                      "--num-attention-heads",
                                      "2",
                                      "--seq-length",
                                      "8",
                                      "--micro-batch-size",
                                      "2",
                                      "--lr",
                                      "1e-3",
                                      "--lr-decay-style",
                                      "constant",
                                      "--split",
                                      "90,10,0",
                                      "--eval-iters",
                                      "0",
                                      "--log-interval",
                                      "1",
                                      "--override-opt_param-scheduler",
                                      "--tokenizer-type",
                                      "NullTokenizer",
                                      "--vocab-size",
                                      "50"};
    flags.insert(flags.end(), more.begin(), more.end());
    const PretrainCase c(flags);
    EXPECT_EQ(c.error, "");
    std::ostringstream out;
    Trained run;
    ::testing::internal::CaptureStderr();
    try {
      run.end = pretrain(
          c.options, c.table, c.notes,
          {.device = {.num_threads = 1}, .stop_requested = [] { return false; }, .out = out});
    } catch (const std::exception& error) {
      run.thrown = error.what();
      run.mistake = dynamic_cast<const Error*>(&error) != nullptr;
    }
    run.errors = ::testing::internal::GetCapturedStderr();
    run.out = out.str();
    return run;
  }
  std::vector<std::int64_t> steps(const std::string& name) const {
    std::vector<std::int64_t> all;
    for (const CheckpointEntry& entry : list_checkpoints(at(name))) {
      all.push_back(entry.step);
    }
    return all;
  }

 private:
  TemporaryFolder folder_;
};

using Steps = std::vector<std::int64_t>;

// With --zero-stage 0 one rank saves and the other waits at the end; with 1 both save, and wait for
// each other's manifests; a save that is synchronous holds up the timers of the other rank.
TEST_F(DiskFailure, ASaveMayTakeLongerThanRanksWaitForEachOther) {
  const std::string data = corpus("corpus", 50);
  disk().pause = 2'500'000;
  for (const char* stage : {"0", "1"}) {
    std::vector<std::string> flags = {"--train-iters",
                                      "2",
                                      "--data-path",
                                      data,
                                      "--save",
                                      at(concat("stage", stage)),
                                      "--zero-stage",
                                      stage,
                                      "--ranks-as-threads",
                                      "2",
                                      "--distributed-timeout-seconds",
                                      "2"};
    if (*stage == '1') {
      flags.emplace_back("--synchronous-save");
    }
    disk().syncs = 0;
    const Trained run = train(flags);
    EXPECT_EQ(run.end, RunEnd::finished) << stage << run.thrown << run.errors;
    EXPECT_EQ(steps(concat("stage", stage)), Steps{2}) << stage;
    EXPECT_EQ(disk().syncs, *stage - '0' + 1);
  }
}

TEST_F(DiskFailure, ARunThatCannotSaveEnds) {
  disk().fsync_error = EIO;
  disk().syncs = 0;
  const Trained run = train({"--train-iters", "12", "--data-path", corpus("corpus", 50), "--save",
                             at("run"), "--save-interval", "1", "--stop-after-failed-saves", "2",
                             "--ranks-as-threads", "2", "--zero-stage", "0"});
  EXPECT_FALSE(run.end);
  EXPECT_FALSE(run.mistake) << run.thrown;
  EXPECT_EQ(disk().syncs, 2) << "the third save is not tried";
  EXPECT_TRUE(run.says("2 saves in a row failed")) << run.thrown;
  EXPECT_TRUE(run.says("the trained model was NOT saved: there is no checkpoint")) << run.thrown;
}

// Whichever rank speaks, also one that saves nothing itself, knows what is on disk.
TEST_F(DiskFailure, TheLastGoodCheckpointIsNamedByAllRanks) {
  disk().fsync_error = EIO;
  disk().good_syncs = 1;
  disk().syncs = 0;
  const Trained run = train({"--train-iters", "12", "--data-path", corpus("corpus", 50), "--save",
                             at("run"), "--save-interval", "1", "--stop-after-failed-saves", "1",
                             "--ranks-as-threads", "4", "--zero-stage", "0"});
  EXPECT_FALSE(run.end);
  EXPECT_EQ(steps("run"), Steps{1});
  EXPECT_TRUE(run.says("is of iteration 1, the run came to 3")) << run.thrown;
}

TEST_F(DiskFailure, TheLastLineSaysThatTheModelWasNotSaved) {
  const std::string data = corpus("corpus", 50);
  const auto flags = [&](const char* iterations) {
    return std::vector<std::string>{"--train-iters", iterations, "--data-path", data,
                                    "--save",        at("run"),  "--load",      at("run")};
  };
  ASSERT_EQ(train(flags("2")).end, RunEnd::finished);
  disk().fsync_error = EIO;
  const Trained run = train(flags("4"));
  EXPECT_EQ(run.end, RunEnd::save_failed) << run.thrown;
  EXPECT_TRUE(run.says("the trained model was NOT saved")) << run.errors;
  EXPECT_TRUE(run.errors.ends_with("is of iteration 2, the run came to 4\n")) << run.errors;
  EXPECT_EQ(steps("run"), Steps{2});
}

// What passes costs a moment, not a checkpoint.
TEST_F(DiskFailure, StaleHandlesAreWaitedFor) {
  const std::string data = corpus("corpus", 50);
  const auto flags = [&](const char* iterations) {
    return std::vector<std::string>{"--train-iters",
                                    iterations,
                                    "--data-path",
                                    data,
                                    "--save",
                                    at("run"),
                                    "--load",
                                    at("run"),
                                    "--save-interval",
                                    "2",
                                    "--ranks-as-threads",
                                    "2"};
  };
  ASSERT_EQ(train(flags("4")).end, RunEnd::finished);
  disk().stale_reads = 2;
  const Trained run = train(flags("5"));
  EXPECT_EQ(run.end, RunEnd::finished) << run.thrown;
  EXPECT_TRUE(run.says("Stale file handle; trying again")) << run.errors;
  EXPECT_EQ(steps("run"), (Steps{2, 4, 5}));
  EXPECT_FALSE(std::filesystem::exists(at("run") + "/earlier-1"));
}

// The folder of checkpoints is listed several times before a run trains.
TEST_F(DiskFailure, AFolderThatIsNotListedOnceIsListedAgain) {
  const std::string data = corpus("corpus", 50);
  const auto flags = [&](int iterations) {
    return std::vector<std::string>{"--train-iters", std::to_string(iterations),
                                    "--data-path",   data,
                                    "--save",        at("run"),
                                    "--load",        at("run")};
  };
  disk().listings = 0;
  Steps expected = {1};
  ASSERT_EQ(train(flags(1)).end, RunEnd::finished);
  const int listings = disk().listings;
  ASSERT_GE(listings, 3);
  for (int which = 1; which <= listings; ++which) {
    disk().listings = 0;
    disk().failing_listing = which;
    const Trained run = train(flags(which + 1));
    EXPECT_EQ(run.end, RunEnd::finished) << which << run.thrown;
    expected.push_back(which + 1);
    EXPECT_EQ(steps("run"), expected) << which;
  }
}

// One machine's memory or mount says nothing about what is on the disk: nobody rolls back for it.
TEST_F(DiskFailure, OnlyWhatTheFirstRankFindsTooIsDamage) {
  const std::string data = corpus("corpus", 50);
  const std::vector<std::string> flags = {
      "--train-iters",   "4", "--data-path",        data, "--save", at("run"), "--load", at("run"),
      "--save-interval", "2", "--ranks-as-threads", "2"};
  ASSERT_EQ(train(flags).end, RunEnd::finished);
  disk().misreads = 1;
  const Trained once = train(flags);
  EXPECT_FALSE(once.end);
  EXPECT_FALSE(once.mistake);
  EXPECT_TRUE(once.says("nothing was moved or removed")) << once.thrown;
  EXPECT_EQ(steps("run"), (Steps{2, 4}));
  const auto file = std::filesystem::path(at("run")) / "step-4" / "rank-0.safetensors";
  std::fstream(file, std::ios::in | std::ios::out).seekp(2000) << "damage";
  const Trained damaged = train(flags);
  EXPECT_EQ(damaged.end, RunEnd::finished) << damaged.thrown;
  EXPECT_TRUE(damaged.says("using the last good checkpoint")) << damaged.errors;
  EXPECT_TRUE(std::filesystem::exists(at("run") + "/earlier-1/step-4"));
}

TEST_F(DiskFailure, DataWithoutDocumentsLeaveNothingBehind) {
  const std::string none = corpus("none", 0), some = corpus("some", 50);
  const std::vector<std::string> run = {"--train-iters", "2", "--save", at("run")};
  for (const std::vector<std::string>& data : std::vector<std::vector<std::string>>{
           {"--data-path", none},
           {"--train-data-path", some, "--valid-data-path", none, "--eval-iters", "1"}}) {
    std::vector<std::string> flags = run;
    flags.insert(flags.end(), data.begin(), data.end());
    const Trained outcome = train(flags);
    EXPECT_TRUE(outcome.mistake) << outcome.out << outcome.errors;
    EXPECT_TRUE(outcome.says("no training data") || outcome.says("--valid-data-path: there are no"))
        << outcome.thrown;
    EXPECT_FALSE(std::filesystem::exists(at("run")));
  }
}

}  // namespace
}  // namespace bloomery
