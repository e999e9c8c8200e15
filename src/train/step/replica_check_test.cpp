#include "train/step/replica_check.h"

#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <set>

#include "comm/error_case.h"
#include "comm/threads.h"

namespace bloomery {
namespace {

RankOptions small_gpt(const Layout& layout) {
  RankOptions options;
  options.model.num_layers = 2;
  options.model.hidden_size = 16;
  options.model.attention.num_heads = 2;
  options.model.vocabulary.size = 50;
  options.model.positions.max_length = 16;
  options.device = {.num_threads = 1};
  options.layout = layout;
  return options;
}

// Flips the last bit of a number of the first parameter whose name has this part.
void corrupt(Rank& rank, const std::string& part) {
  for (const Parameter* parameter : rank.parameters()) {
    if (contains(parameter->name, part)) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, parameter->value.data(), sizeof bits);
      bits ^= 1;
      std::memcpy(parameter->value.data(), &bits, sizeof bits);
      return;
    }
  }
  FAIL() << "no parameter is called " << part;
}

// What all ranks say after the rank `broken` has changed a weight; -1: none.
std::string drift(const Layout& layout, int broken, const std::string& part) {
  std::mutex mutex;
  std::set<std::string> said;
  run_ranks(layout.degrees.num_ranks(), [&](int number, std::unique_ptr<Communicator> world) {
    Rank rank(small_gpt(layout), std::move(world));
    EXPECT_EQ(replica_problem(rank), "");
    EXPECT_EQ(replica_drift(rank), "");
    rank.step(std::vector<HostBatch>{random_batch(1, 16, 50, 1, 0)});
    EXPECT_EQ(replica_drift(rank), "") << "after a step";
    if (number == broken) {
      corrupt(rank, part);
    }
    const std::string mine = replica_drift(rank);
    const std::lock_guard lock(mutex);
    said.insert(mine);
  });
  EXPECT_EQ(said.size(), 1) << "all ranks say the same";
  return *said.begin();
}

TEST(ReplicaCheck, OfThreeReplicasTheOneThatDriftedIsNamed) {
  for (const int zero_stage : {0, 1, 2}) {
    Layout layout;
    layout.degrees.data = 3;
    layout.sharded = Sharding::of_stage(zero_stage);
    const std::string found = drift(layout, 1, "mlp");
    EXPECT_TRUE(contains(found, ": rank(s) 1 differ from the other 2")) << found;
    EXPECT_TRUE(contains(found, "mlp")) << found;
  }
}

TEST(ReplicaCheck, TensorRanksShareNorms) {
  Layout layout;
  layout.degrees.tensor = 2;
  const std::string found = drift(layout, 1, "norm");
  EXPECT_TRUE(contains(found, ": ranks 0, 1 differ, and it is unknown") ||
              contains(found, ": ranks 1, 0 differ, and it is unknown"))
      << found;
  EXPECT_TRUE(contains(found, "norm")) << found;
}

TEST(ReplicaCheck, StagesShareTheEmbedding) {
  Layout layout;
  layout.degrees.pipeline = 2;
  const std::string found = drift(layout, 1, "embedding.tokens");
  EXPECT_TRUE(contains(found, "embedding.tokens")) << found;
  EXPECT_TRUE(contains(found, "differ, and it is unknown")) << found;
}

TEST(ReplicaCheck, ShardedWeightsHaveNoReplicas) {
  Layout layout;
  layout.degrees.data = 2;
  layout.sharded = Sharding::of_stage(3);
  run_ranks(2, [&](int, std::unique_ptr<Communicator> world) {
    Rank rank(small_gpt(layout), std::move(world));
    EXPECT_TRUE(contains(replica_problem(rank), "--zero-stage 3"));
  });
  Rank alone(small_gpt({}));
  EXPECT_EQ(replica_problem(alone), "one rank has no replicas");
}

}  // namespace
}  // namespace bloomery
