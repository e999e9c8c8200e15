// Communicators of NCCL beside failures, with a library that stands in for NCCL.
#include "comm/nccl/nccl_handle.h"

#include <gtest/gtest.h>

#include "base/library.h"
#include "comm/error_case.h"
#include "comm/nccl/fake_nccl.h"
#include "comm/threads.h"
#include "comm/watch/watch.h"

namespace bloomery {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kInProgress = NcclLibrary::kInProgress;

class NcclHandleCase : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(library_) << BLOOMERY_FAKE_NCCL << " is not there";
    fake_ = library_.function<FakeNccl*()>("fake_nccl")();
    fake_->call_result = fake_->async_result = 0;
    fake_->call_microseconds = fake_->abort_milliseconds = 0;
    fake_->aborted = fake_->destroyed = fake_->uses_after_end = fake_->most_aborting = 0;
    fake_->blocking = -1;
  }
  // A rank that is alone, of a world in which others may fail.
  std::unique_ptr<Communicator> rank() const {
    return std::move(make_thread_communicators(1, {.timeout_seconds = 60}).front());
  }
  static bool comes(const std::function<bool()>& what, double seconds = 5) {
    const Deadline end = seconds_from_now(seconds);
    while (!what() && seconds_until(end) > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return what();
  }
  int all_reduce(NcclLibrary::Comm comm) const {
    return nccl_->all_reduce(nullptr, nullptr, 0, 7, 0, comm, nullptr);
  }

  const Library library_ = Library::open({BLOOMERY_FAKE_NCCL});
  const std::shared_ptr<const NcclLibrary> nccl_ = NcclLibrary::open({BLOOMERY_FAKE_NCCL});
  FakeNccl* fake_ = nullptr;
};

TEST_F(NcclHandleCase, ACallIsDoneWhenNcclHasTakenIt) {
  const auto world = rank();
  {
    NcclHandle handle(nccl_, world->host());
    EXPECT_EQ(fake_->blocking, 0) << "no call may block in NCCL";
    fake_->call_result = fake_->async_result = kInProgress;
    std::atomic<bool> done = false;
    std::thread caller([&] {
      handle.call("ncclAllReduce", [&](auto comm) { return all_reduce(comm); });
      done = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(done);
    fake_->async_result = 0;
    caller.join();
  }
  EXPECT_EQ(fake_->destroyed, 1);
  EXPECT_EQ(fake_->aborted, 0);
}

TEST_F(NcclHandleCase, ErrorsOfCallsAreSaidWithTheCall) {
  const auto world = rank();
  NcclHandle handle(nccl_, world->host());
  fake_->call_result = 1;
  try {
    handle.call("ncclAllReduce", [&](auto comm) { return all_reduce(comm); });
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_TRUE(contains(error.what(), "ncclAllReduce failed: a fake error")) << error.what();
  }
}

TEST_F(NcclHandleCase, AStartThatHangsEndsWhenARankFails) {
  const auto world = rank();
  fake_->async_result = kInProgress;
  std::thread failing([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    world->host().world()->fail(3, "gone");
  });
  EXPECT_EQ(error_of([&] { NcclHandle handle(nccl_, world->host()); }), "rank 3 failed: gone");
  failing.join();
  EXPECT_EQ(fake_->aborted, 1);
}

TEST_F(NcclHandleCase, ACallThatHangsEndsWhenARankFails) {
  const auto world = rank();
  NcclHandle handle(nccl_, world->host());
  fake_->call_result = fake_->async_result = kInProgress;
  std::thread failing([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    world->host().world()->fail(3, "gone");
  });
  EXPECT_EQ(error_of([&] { handle.call("ncclSend", [&](auto comm) { return all_reduce(comm); }); }),
            "rank 3 failed: gone");
  failing.join();
  EXPECT_TRUE(comes([&] { return fake_->aborted == 1; }));
}

TEST_F(NcclHandleCase, ACallThatNcclNeverTakesEndsInTime) {
  const auto world = std::move(make_thread_communicators(1, {.timeout_seconds = 0.2}).front());
  NcclHandle handle(nccl_, world->host());
  fake_->call_result = fake_->async_result = kInProgress;
  const std::string error =
      error_of([&] { handle.call("ncclSend", [&](auto comm) { return all_reduce(comm); }); });
  EXPECT_TRUE(contains(error, "rank 0 failed: it waited 0.2 s until NCCL had taken ncclSend"))
      << error;
  EXPECT_TRUE(comes([&] { return fake_->aborted == 1; }));
}

TEST_F(NcclHandleCase, NobodyUsesACommunicatorThatHasEnded) {
  for (int i = 0; i < 20; ++i) {
    const auto world = rank();
    NcclHandle handle(nccl_, world->host());
    fake_->call_microseconds = 300;
    std::thread caller([&] {
      error_of([&] {
        for (;;) {
          handle.call("ncclAllReduce", [&](auto comm) { return all_reduce(comm); });
        }
      });
    });
    EXPECT_TRUE(comes([&] { return fake_->inside > 0; }));
    world->host().world()->fail(3, "gone");
    caller.join();
  }
  EXPECT_EQ(fake_->aborted, 20);
  EXPECT_EQ(fake_->uses_after_end, 0);
}

TEST_F(NcclHandleCase, AllCommunicatorsEndSideBySideAndNotInTheThreadThatFoundTheFailure) {
  const auto world = rank();
  std::vector<std::unique_ptr<NcclHandle>> handles;
  for (int i = 0; i < 6; ++i) {
    handles.push_back(std::make_unique<NcclHandle>(nccl_, world->host()));
  }
  fake_->abort_milliseconds = 100;
  const auto start = Clock::now();
  world->host().world()->fail(3, "gone");
  EXPECT_LT(Clock::now() - start, std::chrono::milliseconds(80));
  handles.clear();
  EXPECT_EQ(fake_->aborted, 6);
  EXPECT_EQ(fake_->most_aborting, 6);
  EXPECT_EQ(fake_->destroyed, 0);
}

TEST_F(NcclHandleCase, AnErrorWhileNobodyCallsFailsTheWorld) {
  const auto world = rank();
  const auto group = std::shared_ptr<World>(std::shared_ptr<void>(), world->host().world());
  NcclHandle handle(nccl_, world->host(), 0.6);
  const Watch watch(group, {}, [](bool) {});
  fake_->async_result = 6;
  EXPECT_FALSE(comes([&] { return group->failed(); }, 0.4)) << "others may know better";
  EXPECT_TRUE(comes([&] { return group->failed(); }, 3));
  EXPECT_TRUE(contains(group->failure().text, "rank 0 failed: NCCL reports: a fake error"))
      << group->failure().text;
  EXPECT_TRUE(comes([&] { return fake_->aborted == 1; }));
}

TEST(NcclLibrary, TheRealOneHasAllFunctionsWhereItIsInstalled) {
  std::shared_ptr<const NcclLibrary> nccl;
  try {
    nccl = NcclLibrary::open();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  if (nccl == nullptr) {
    GTEST_SKIP() << "no NCCL here";
  }
  EXPECT_GE(nccl->number(), 2'14'00);
  EXPECT_EQ(NcclLibrary::open({"no-such-library.so"}), nullptr);
}

}  // namespace
}  // namespace bloomery
