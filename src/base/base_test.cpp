#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <thread>

#include "base/error.h"
#include "base/random.h"
#include "base/thread_pool.h"

namespace bloomery {
namespace {

TEST(Check, JoinsItsParts) {
  check(true, "never");
  try {
    check(false, "size ", 3, " is not ", 4.5);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "size 3 is not 4.5");
  }
}

template <class T>
std::pair<std::string, T> named(T value,
                                std::source_location at = std::source_location::current()) {
  return {function(at), value};
}

TEST(Place, NamesTheFunction) {
  const auto in_lambda = [](int x) { return named(x).first; };
  EXPECT_EQ(named(1).first, "TestBody");
  EXPECT_FALSE(in_lambda(1).empty());
}

// Known answers of the published generator.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox(0, {0, 0, 0, 0}),
            (RandomBlock{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(philox(~0ull, {~0u, ~0u, ~0u, ~0u}),
            (RandomBlock{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(philox(0x299f31d0a4093822ull, {0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}),
            (RandomBlock{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(Random, NormalHasUnitMoments) {
  const RandomKey key = random_key(7, "test");
  double sum = 0, squares = 0;
  constexpr int kCount = 200000;
  for (int i = 0; i < kCount; ++i) {
    const double x = random_normal(key, i);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kCount, 0.0, 0.01);
  EXPECT_NEAR(squares / kCount, 1.0, 0.01);
  EXPECT_NE(random_key(7, "a"), random_key(7, "b"));
  EXPECT_NE(random_key(7, "a"), random_key(8, "a"));
}

TEST(ThreadPool, WorkersLeaveSignalsToOthers) {
  ThreadPool pool(3);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> blocked = 0, workers = 0;
  pool.for_each(300, [&](std::int64_t) {
    if (std::this_thread::get_id() == caller) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));  // leaves items to the workers
      return;
    }
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    ++workers;
    blocked += sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGSEGV) == 0 ? 1 : 0;
  });
  EXPECT_GT(workers, 0);
  EXPECT_EQ(blocked, workers);
}

TEST(ThreadPool, RunsEachItemOnce) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<std::atomic<int>> hits(37);
      pool.for_each(37, [&](std::int64_t i) { ++hits[i]; });
      for (const auto& hit : hits) {
        EXPECT_EQ(hit.load(), 1);
      }
    }
  }
}

TEST(ThreadPool, RangesCoverTheCount) {
  ThreadPool pool(3);
  std::atomic<std::int64_t> sum = 0;
  pool.for_ranges(1000, 64, [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
  EXPECT_EQ(sum.load(), 1000);
  pool.for_ranges(0, 64, [&](std::int64_t, std::int64_t) { FAIL(); });
}

TEST(ThreadPool, RethrowsAndStaysUsable) {
  ThreadPool pool(4);
  EXPECT_THROW(pool.for_each(100, [](std::int64_t i) { check(i != 50, "fifty"); }), Error);
  std::atomic<int> count = 0;
  pool.for_each(100, [&](std::int64_t) { ++count; });
  EXPECT_EQ(count.load(), 100);
}

TEST(ThreadPool, SeveralThreadsMayCall) {
  ThreadPool pool(3);
  std::atomic<int> count = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        pool.for_each(10, [&](std::int64_t) { ++count; });
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  EXPECT_EQ(count.load(), 4000);
}

TEST(ThreadPool, NestedLoopsRunInPlace) {
  ThreadPool pool(2);
  std::atomic<int> count = 0;
  pool.for_each(8, [&](std::int64_t) { pool.for_each(8, [&](std::int64_t) { ++count; }); });
  EXPECT_EQ(count.load(), 64);
}

}  // namespace
}  // namespace bloomery
