#include "base/block_io.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/temporary_folder.h"

namespace {

// Calls to hand blocks to the kernel that fail from now on, as the kernel's may for want of memory.
std::atomic<int> failing_enters = 0;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

}  // namespace

// In place of libc's, in this program.
extern "C" long syscall(long number, ...) noexcept {
  using Call = long (*)(long, ...);
  static const auto real = reinterpret_cast<Call>(dlsym(RTLD_NEXT, "syscall"));
  va_list list;
  va_start(list, number);
  std::array<long, 6> a{};
  for (long& each : a) each = va_arg(list, long);
  va_end(list);
  if (number == __NR_io_uring_enter && failing_enters.load() > 0) {
    --failing_enters;
    errno = ENOMEM;
    return -1;
  }
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

namespace bloomery {
namespace {

struct Aligned {
  explicit Aligned(std::size_t bytes)
      : data(static_cast<char*>(std::aligned_alloc(kDirectAlignment, bytes))), size(bytes) {}
  ~Aligned() { std::free(data); }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  char* data;
  std::size_t size;
};

void fill(const Aligned& memory, unsigned seed) {
  std::mt19937 random(seed);
  for (std::size_t i = 0; i < memory.size; ++i) {
    memory.data[i] = static_cast<char>(random());
  }
}

class BlockIoTest : public ::testing::TestWithParam<bool> {
 protected:
  BlockIoOptions options() const {
    return {.block_bytes = 16384, .queue_depth = 3, .threads = 2, .use_uring = GetParam()};
  }
  TemporaryFolder folder_;
};

TEST_P(BlockIoTest, WhatIsWrittenIsRead) {
  constexpr std::size_t kBytes = 37 * kDirectAlignment;
  ScratchFile file(folder_.path(), 2 * kBytes);
  BlockIo io(options());
  Aligned written(kBytes), read(kBytes);
  fill(written, 1);
  io.transfer(file, BlockIo::Direction::write, kBytes, written.data, kBytes);
  io.transfer(file, BlockIo::Direction::read, kBytes, read.data, kBytes);
  EXPECT_EQ(std::memcmp(written.data, read.data, kBytes), 0);
  // A part of it, and what was never written.
  io.transfer(file, BlockIo::Direction::read, kBytes + kDirectAlignment, read.data,
              2 * kDirectAlignment);
  EXPECT_EQ(std::memcmp(written.data + kDirectAlignment, read.data, 2 * kDirectAlignment), 0);
  io.transfer(file, BlockIo::Direction::read, 0, read.data, kDirectAlignment);
  EXPECT_EQ(std::vector<char>(read.data, read.data + kDirectAlignment),
            std::vector<char>(kDirectAlignment, 0));
}

TEST_P(BlockIoTest, TheFolderStaysEmpty) {
  const ScratchFile file(folder_.path(), 1 << 20);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_P(BlockIoTest, AFileThatEndsEarlyIsOneMessage) {
  ScratchFile file(folder_.path(), 4 * kDirectAlignment);
  BlockIo io(options());
  Aligned memory(32 * kDirectAlignment);
  try {
    io.transfer(file, BlockIo::Direction::read, 0, memory.data, memory.size);
    FAIL() << "read more than there is";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cannot be read"), std::string::npos) << error.what();
  }
}

// A limit on the size of files stands for a full disk: writes beyond it fail.
TEST_P(BlockIoTest, AFullDiskIsOneMessage) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  ScratchFile file(folder_.path(), 4 * kDirectAlignment);
  BlockIo io(options());
  Aligned memory(64 * kDirectAlignment);
  fill(memory, 2);
  rlimit small = before;
  small.rlim_cur = 8 * kDirectAlignment;
  setrlimit(RLIMIT_FSIZE, &small);
  std::string message;
  try {
    io.transfer(file, BlockIo::Direction::write, 0, memory.data, memory.size);
  } catch (const Error& error) {
    message = error.what();
  }
  EXPECT_THROW(ScratchFile(folder_.path(), 1 << 20), Error);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NE(message.find("cannot be written"), std::string::npos) << message;
  EXPECT_NE(message.find("checkpoint"), std::string::npos) << message;
}

TEST_P(BlockIoTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_THROW(ScratchFile(concat(folder_.path().string(), "/nowhere"), 4096), Error);
}

// What was not handed over is not handed over later, with memory that somebody else has by then.
TEST(BlockIoRing, LeavesTheMemoryOfATransferThatFailed) {
  constexpr std::size_t kBytes = 16 * kDirectAlignment;
  const TemporaryFolder folder;
  ScratchFile file(folder.path(), kBytes);
  BlockIo io({.block_bytes = kDirectAlignment, .queue_depth = 3});
  if (std::string(io.method()) != "io_uring") {
    GTEST_SKIP() << "this kernel has no io_uring";
  }
  Aligned written(kBytes), lost(kBytes), read(kBytes);
  fill(written, 3);
  io.transfer(file, BlockIo::Direction::write, 0, written.data, kBytes);
  for (const int failures : {1, 3}) {
    failing_enters = failures;
    EXPECT_THROW(io.transfer(file, BlockIo::Direction::read, 0, lost.data, kBytes), Error);
    failing_enters = 0;
    std::memset(lost.data, 7, kBytes);
    io.transfer(file, BlockIo::Direction::read, 0, read.data, kBytes);
    EXPECT_EQ(std::memcmp(written.data, read.data, kBytes), 0);
    EXPECT_EQ(static_cast<std::size_t>(std::count(lost.data, lost.data + kBytes, 7)), kBytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, BlockIoTest, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& each) {
                           return each.param ? "uring" : "threads";
                         });

}  // namespace
}  // namespace bloomery
