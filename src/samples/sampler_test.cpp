// Orders of samples against Megatron's, with torch's permutations (tools/golden/samples.py).
#include "samples/sampler.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace bloomery {
namespace {

using Samples = std::vector<std::int64_t>;

TEST(Sampler, SingleTakesBlocksInOrder) {
  SamplerOptions options;
  options.total_samples = 23;
  options.micro_batch_size = 2;
  options.data_parallel_size = 3;
  options.data_parallel_rank = 1;
  const Sampler sampler(options);
  EXPECT_EQ(sampler.samples(0), (Samples{2, 3}));
  EXPECT_EQ(sampler.samples(6), (Samples{8, 9}));
  EXPECT_EQ(sampler.samples(5), (Samples{7, 8}));  // after a run with another micro-batch size
  EXPECT_TRUE(sampler.has(17));
  EXPECT_FALSE(sampler.has(18));  // the last block is incomplete
  EXPECT_THROW(sampler.samples(18), Error);
  EXPECT_THROW(sampler.samples(-1), Error);
}

TEST(Sampler, CyclicFollowsTorch) {
  const char* root = std::getenv("BLOOMERY_ROOT");
  ASSERT_NE(root, nullptr);
  const auto cases =
      nlohmann::json::parse(read_file(std::string(root) + "/tests/golden/samples.json"))["cyclic"];
  for (const nlohmann::json& expected : cases) {
    SamplerOptions options;
    options.type = LoaderType::cyclic;
    options.total_samples = expected["total"];
    options.micro_batch_size = expected["micro"];
    options.data_parallel_size = expected["ranks"];
    options.data_sharding = expected["sharding"];
    for (const nlohmann::json& batches : expected["batches"]) {
      const Sampler sampler(options);
      for (std::size_t n = batches.size(); n-- > 0;) {  // any order: nothing is remembered
        const auto consumed = static_cast<std::int64_t>(n) * options.block();
        EXPECT_EQ(sampler.samples(consumed), batches[n].get<Samples>()) << n;
      }
      ++options.data_parallel_rank;
    }
  }
}

TEST(Sampler, CyclicRefusesToChangeInTheMiddle) {
  SamplerOptions options;
  options.type = LoaderType::cyclic;
  options.total_samples = 23;
  options.micro_batch_size = 4;
  const Sampler sampler(options);
  EXPECT_NO_THROW(sampler.samples(1'000'000 * 20));
  EXPECT_THROW(sampler.samples(3), Error);
}

TEST(Sampler, NeedsOneBlock) {
  SamplerOptions options;
  options.total_samples = 5;
  options.micro_batch_size = 2;
  options.data_parallel_size = 3;
  EXPECT_THROW(Sampler{options}, Error);
  options.data_parallel_size = 2;
  EXPECT_NO_THROW(Sampler{options});
  options.data_parallel_rank = 2;
  EXPECT_THROW(Sampler{options}, Error);
}

}  // namespace
}  // namespace bloomery
