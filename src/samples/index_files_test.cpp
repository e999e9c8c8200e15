// Waiting for another builder; the rest is tested with the indices that use it.
#include "samples/index_files.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/temporary_folder.h"

namespace bloomery {
namespace {

class IndexFilesTest : public testing::Test {
 protected:
  IndexFilesTest() {
    files_.what = "the index of it";
    files_.stem = "it";
    files_.suffixes = {".a", ".b"};
    files_.contents = "one";
    files_.places = files_.build_places = {folder_.path()};
  }

  void open() {
    open_or_build(
        files_,
        [&](const std::filesystem::path& stem) {
          ++builds_;
          for (const std::string& suffix : files_.suffixes) {
            std::ofstream(with_suffix(stem, suffix)) << files_.contents;
          }
        },
        [&](const std::filesystem::path& stem) { mapped_ = read_file(with_suffix(stem, ".b")); },
        Log());
  }

  TemporaryFolder folder_;
  IndexFiles files_;
  int builds_ = 0;
  std::string mapped_;
};

TEST_F(IndexFilesTest, IsBuiltOncePerContents) {
  for (const char* contents : {"one", "two", "three", "two", "one"}) {
    files_.contents = contents;
    open();
    EXPECT_EQ(mapped_, contents);
  }
  EXPECT_EQ(builds_, 3);
  EXPECT_EQ(read_file(folder_.path() / "it.b"), "one");  // never replaced
}

TEST_F(IndexFilesTest, WhatAKilledBuilderLeftIsNotUsed) {
  std::ofstream(folder_.path() / "it.b") << "half of another";
  open();
  EXPECT_EQ(mapped_, "one");
  EXPECT_EQ(read_file(folder_.path() / "it.b"), "one");
}

TEST_F(IndexFilesTest, AWaitIsSaidAndEnds) {
  std::unique_ptr<FileLock> lock = FileLock::try_lock(folder_.path() / ".it.lock");
  files_.longest_wait = std::chrono::milliseconds(100);
  testing::internal::CaptureStderr();
  EXPECT_THROW(open(), Error);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("waiting"), std::string::npos) << log;
  EXPECT_NE(log.find("the index of it"), std::string::npos) << log;
  EXPECT_EQ(builds_, 0);

  files_.longest_wait = std::chrono::minutes(1);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    lock.reset();
  });
  open();
  other.join();
  EXPECT_EQ(builds_, 1);
}

}  // namespace
}  // namespace bloomery
