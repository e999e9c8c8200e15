// Locks, temporary names, and folders that appear whole.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/folder.h"
#include "base/temporary_folder.h"
#include "base/temporary_name.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

// Runs in a child process, which then ends without destructors.
template <class Body>
int in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(FileLock, OneHolderAmongObjectsAndProcesses) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / ".lock";
  {
    const auto lock = FileLock::try_lock(path);
    ASSERT_TRUE(lock);
    EXPECT_EQ(lock_holder(path), this_process());
    EXPECT_FALSE(FileLock::try_lock(path));
    EXPECT_EQ(in_child([&] { return FileLock::try_lock(path) ? 1 : 7; }), 7);
    try {
      FileLock(path, {.longest = std::chrono::milliseconds(30)});
      FAIL();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(this_process()), std::string::npos) << error.what();
    }
  }
  // A process that ends without letting go leaves it free.
  EXPECT_EQ(in_child([&] { return FileLock::try_lock(path).release() != nullptr ? 7 : 1; }), 7);
  EXPECT_TRUE(FileLock::try_lock(path));
}

TEST(FileLock, WaitsAndSaysForWhom) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / ".lock";
  auto first = FileLock::try_lock(path);
  std::string holder;
  const FileLock second(path,
                        {.longest = std::chrono::seconds(20), .on_wait = [&](const auto& who) {
                           holder = who;
                           first.reset();
                         }});
  EXPECT_EQ(holder, this_process());
}

// A file system without locks is no reason to write without one.
TEST(FileLock, EveryOtherErrorIsTold) {
  EXPECT_TRUE(means_held(EWOULDBLOCK, "x"));
  for (const int error : {ENOLCK, EOPNOTSUPP, ENOSYS, EBADF, EIO}) {
    EXPECT_THROW(means_held(error, "x"), Error) << error;
  }
  EXPECT_THROW(FileLock::try_lock("/proc/nowhere/.lock"), Error);
}

TEST(TemporaryName, TellsWhetherItsWriterHasEnded) {
  const std::string mine = temporary_name("a/step-7").filename().string();
  EXPECT_NE(temporary_name("a/step-7").filename(), mine);
  EXPECT_EQ(final_name_of(mine), "step-7");
  EXPECT_FALSE(writer_has_ended(mine));
  EXPECT_FALSE(writer_has_ended(mine + "-elsewhere"));  // another machine
  const std::string process = std::to_string(getpid());
  const std::size_t at = mine.find(process);
  // A process that was here before with the same number, and one that has ended.
  std::string before = mine, gone = mine;
  before[at + process.size() + 1] ^= 1;
  EXPECT_TRUE(writer_has_ended(before));
  const pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  gone.replace(at, process.size(), std::to_string(child));
  EXPECT_FALSE(writer_has_ended(gone));  // nobody has waited for it yet
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(writer_has_ended(gone));
  for (const char* other : {"step-7", "step-7.tmp-12", "step-7.tmp-trash-12-0", "step-7.tmp-"}) {
    EXPECT_FALSE(writer_has_ended(other)) << other;
    EXPECT_EQ(final_name_of(other), "") << other;
  }
}

TEST(StagedFolder, ANameMayEndWithASlash) {
  const TemporaryFolder folder;
  StagedFolder staged(folder.path() / "new/");
  staged.commit();
  EXPECT_TRUE(std::filesystem::is_directory(folder.path() / "new"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(StagedFolder, AppearsWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const fs::path name = folder.path() / "above" / "model";
  {
    const StagedFolder abandoned(name);
    std::ofstream(abandoned.path() / "file") << "x";
    EXPECT_FALSE(fs::exists(name));
  }
  EXPECT_TRUE(fs::is_empty(name.parent_path()));
  for (int round = 0; round < 2; ++round) {
    StagedFolder staged(name);
    AtomicFile file(staged.path() / "file");
    file.write("x");
    file.commit();
    if (round == 0) {
      staged.commit();
      EXPECT_EQ(read_file(name / "file"), "x");
    } else {
      EXPECT_THROW(staged.commit(), std::runtime_error);  // it is in use
    }
  }
  EXPECT_EQ(read_file(name / "file"), "x");
  // A process that was killed leaves the temporary folder; the next one takes it away.
  EXPECT_EQ(in_child([&] { return (new StagedFolder(name))->path().empty() ? 1 : 7; }), 7);
  EXPECT_EQ(visible_names(name.parent_path()).size(), 2u);
  { const StagedFolder next(name); }
  EXPECT_EQ(visible_names(name.parent_path()).size(), 1u);
  remove_folder(name);
  remove_folder(name);
  EXPECT_TRUE(fs::is_empty(name.parent_path()));
  EXPECT_THROW(StagedFolder("/proc/nowhere/model"), Error);
}

// Of another machine nobody can say whether it lives, but what nobody writes to is nobody's.
TEST(Temporaries, OfOtherMachinesGoADayAfterTheirLastChange) {
  const TemporaryFolder folder;
  const auto theirs = [&](const char* name) {
    const fs::path path = temporary_name(folder.path() / name).string() + "-elsewhere";
    fs::create_directory(path);
    std::ofstream(path / "part") << "x";
    return path;
  };
  const auto age = [](const fs::path& path, int hours) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  const fs::path old = theirs("step-1"), half = theirs("step-2"), fresh = theirs("step-3");
  age(old / "part", 25);
  age(old, 25);
  age(half, 25);  // a file in it was written a moment ago
  const auto kept = remove_temporaries(folder.path(), [](std::string_view) { return true; });
  EXPECT_EQ(std::set(kept.begin(), kept.end()),
            (std::set<std::string>{half.filename(), fresh.filename()}));
  EXPECT_EQ(visible_names(folder.path()).size(), 2u);
}

// What a disk that fails looks like: a read of memory that is not there gives EIO.
TEST(InputFile, TellsOfDisksThatFailAndFilesThatShrink) {
  std::byte byte{};
  EXPECT_THROW(InputFile("/proc/self/mem").read(0, &byte, 1), std::runtime_error);
  const TemporaryFolder folder;
  const fs::path path = folder.file("data", std::string(10000, 'x'));
  const InputFile file(path);
  fs::resize_file(path, 5000);
  file.read(4999, &byte, 1);
  EXPECT_THROW(file.read(5000, &byte, 1), Error);
}

}  // namespace
}  // namespace bloomery
