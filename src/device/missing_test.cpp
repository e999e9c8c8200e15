// What is said where a device or its memory cannot be had.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "base/error.h"
#include "build_config.h"
#include "device/memory_source.h"
#include "device/stream.h"

namespace bloomery {
namespace {

// What `body` throws, in a process of its own that has no more addresses than it uses.
std::string error_under_address_limit(const std::function<void()>& body) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t process = fork();
  if (process == 0) {
    const rlimit limit{std::size_t{64} << 30, std::size_t{64} << 30};
    setrlimit(RLIMIT_AS, &limit);
    try {
      body();
    } catch (const Error& error) {
      [[maybe_unused]] const ssize_t count = write(ends[1], error.what(), strlen(error.what()));
    }
    _exit(0);
  }
  close(ends[1]);
  waitpid(process, nullptr, 0);
  char text[1024] = "";
  EXPECT_GT(read(ends[0], text, sizeof text - 1), 0);
  close(ends[0]);
  return text;
}

TEST(Pool, SaysThatAddressesAreLimited) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need more addresses themselves";
#endif
  const auto allocate_on = [](DeviceKind kind) {
    return error_under_address_limit([kind] {
      Device device({.kind = kind, .num_threads = 1});
      Stream stream(device);
      Storage much(stream.memory(), std::size_t{1} << 40);
    });
  };
  const std::string plan = allocate_on(DeviceKind::abstract);
  EXPECT_NE(plan.find("ulimit -v unlimited"), std::string::npos) << plan;
  EXPECT_EQ(plan.find("abstract"), std::string::npos) << plan;
  const std::string real = allocate_on(DeviceKind::cpu);
  EXPECT_NE(real.find("on the CPU under `ulimit -v`"), std::string::npos) << real;
}

TEST(Device, AGpuThatIsNotThereIsAMistakeWithTheNextStep) {
  try {
    Device device({.kind = DeviceKind::cuda, .index = 99, .num_threads = 1});
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    const char* const expected = !build::cuda              ? "make cuda"
                                 : num_cuda_devices() == 0 ? "bloomery doctor"
                                                           : "GPU 99 was asked for";
    EXPECT_NE(text.find(expected), std::string::npos) << text;
  }
  if (build::cuda && num_cuda_devices() == 0) {
    EXPECT_THROW(raw::free_bytes(DeviceKind::cuda, 0), Error);
    EXPECT_THROW(device_identity(0), Error);
    EXPECT_THROW(use_device({.kind = DeviceKind::cuda}), Error);
  }
}

}  // namespace
}  // namespace bloomery
