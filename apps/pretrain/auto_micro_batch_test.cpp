#include "apps/pretrain/auto_micro_batch.h"

#include <gtest/gtest.h>

#include <mutex>

#include "comm/threads.h"
#include "train/plan/options_case.h"

namespace bloomery {
namespace {

TEST(AutoMicroBatch, TheWordIsReplacedByANumber) {
  for (const std::vector<std::string>& given :
       {std::vector<std::string>{"--micro-batch-size", "auto"},
        std::vector<std::string>{"--micro_batch_size", "auto"},
        std::vector<std::string>{"--micro-batch-size=auto"}}) {
    std::vector<std::string> words = given;
    EXPECT_TRUE(take_auto_micro_batch(words));
    EXPECT_EQ(words.back().back(), '1');
  }
  std::vector<std::string> words = {"--micro-batch-size", "4", "auto"};
  EXPECT_FALSE(take_auto_micro_batch(words));
}

// Each rank has a device of its own: the one with the least memory decides for all.
TEST(AutoMicroBatch, RanksThatMeasureDifferentRoomChooseTheSame) {
  const PretrainCase c(small_gpt({"--train-iters", "1", "--global-batch-size", "64",
                                  "--tokenizer-type", "NullTokenizer", "--vocab-size", "300"}));
  ASSERT_EQ(c.error, "");
  const auto chosen = [&](const Room& room) {
    PretrainOptions options = c.options;
    choose_micro_batch(options, room);
    return options.batch.micro;
  };
  constexpr std::int64_t kPlenty = std::int64_t{1} << 36;
  const auto room_of = [](int rank) {
    return Room{DeviceKind::cuda, rank == 2 ? std::int64_t{12} << 20 : kPlenty,
                rank == 1 ? kPlenty / 2 : kPlenty};
  };
  ASSERT_LT(chosen(room_of(2)), chosen(room_of(0)));
  std::mutex mutex;
  std::vector<std::int64_t> all;
  run_ranks(4, [&](int rank, std::unique_ptr<Communicator> world) {
    const Room room = smallest_room(world->host(), room_of(rank));
    const std::scoped_lock lock(mutex);
    EXPECT_EQ(room.host, kPlenty / 2);
    all.push_back(chosen(room));
  });
  EXPECT_EQ(all, std::vector<std::int64_t>(4, chosen(room_of(2))));
}

}  // namespace
}  // namespace bloomery
