#include "text/lines/line_engine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>
#include <thread>

#include "base/error.h"

namespace bloomery {
namespace {

// Numbers from 0, one chunk each.
class Numbers : public ChunkSource {
 public:
  explicit Numbers(std::uint64_t count) : count_(count) {}
  bool next(LineChunk& chunk) override {
    chunk.offset = at_;
    chunk.used = 0;
    return at_++ < count_;
  }

 private:
  std::uint64_t count_, at_ = 0;
};

struct Fixture : testing::Test {
  // Runs streams of these lengths; notes what was taken of each stream.
  bool run(std::vector<std::uint64_t> lengths, int at_once, int workers) {
    taken.clear();
    ended.clear();
    std::vector<std::unique_ptr<Numbers>> sources;
    LineEngineOptions options{.streams_at_once = at_once, .workers = workers, .stop = &stop};
    for (const std::uint64_t length : lengths) {
      sources.push_back(std::make_unique<Numbers>(length));
      options.streams.push_back(sources.back().get());
    }
    std::vector<std::uint64_t> results(num_slots(options));
    return run_line_engine(options,
                           {.make_worker =
                                [&](std::size_t worker) {
                                  return [&, random = std::mt19937(worker)](
                                             const LineChunk& chunk, std::size_t slot) mutable {
                                    if (random() % 8 == 0) std::this_thread::yield();
                                    if (chunk.offset == bad) throw Error("bad chunk");
                                    results[slot] = chunk.offset * 3;
                                  };
                                },
                            .take =
                                [&](std::size_t stream, const LineChunk& chunk, std::size_t slot) {
                                  EXPECT_EQ(results[slot], chunk.offset * 3);
                                  EXPECT_EQ(taken[stream]++, chunk.offset);
                                },
                            .ended = [&](std::size_t stream) { ended[stream] = taken[stream]; },
                            .go_on = [&] { return go_on-- > 0; }});
  }

  std::atomic<bool> stop = false;
  std::uint64_t bad = UINT64_MAX;
  std::int64_t go_on = 1 << 30;
  std::map<std::size_t, std::uint64_t> taken, ended;
};

TEST_F(Fixture, EveryStreamInItsOrder) {
  const std::vector<std::uint64_t> lengths = {500, 0, 1, 300, 700, 0};
  for (const int at_once : {1, 2, 6, 50}) {
    for (const int workers : {1, 3, 8}) {
      EXPECT_TRUE(run(lengths, at_once, workers));
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        EXPECT_EQ(taken[i], lengths[i]);
        EXPECT_EQ(ended.at(i), lengths[i]);
      }
    }
  }
  EXPECT_FALSE(stop);  // so that it can run again
  EXPECT_TRUE(run({}, 1, 1));
}

TEST_F(Fixture, AFailureAndAPersonStopEveryone) {
  bad = 200;
  EXPECT_THROW(run({500, 100}, 2, 3), Error);
  EXPECT_LE(taken[0], 200);
  stop = false;
  bad = UINT64_MAX;
  go_on = 10;
  EXPECT_FALSE(run({500, 500}, 1, 2));
  EXPECT_LE(taken[0], 10);
}

}  // namespace
}  // namespace bloomery
