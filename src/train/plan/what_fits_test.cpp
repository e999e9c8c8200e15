// Flags that are said to fit do, by the plan that they give; nothing else is said.
#include "train/plan/what_fits.h"

#include <gtest/gtest.h>

#include <sstream>

#include "train/plan/options_case.h"

namespace bloomery {
namespace {

constexpr std::int64_t kVocabulary = 1000;

std::vector<std::string> flags_of(const std::string& micro, const std::string& more = "") {
  std::vector<std::string> all = {"--num-layers",
                                  "6",
                                  "--hidden-size",
                                  "128",
                                  "--num-attention-heads",
                                  "4",
                                  "--seq-length",
                                  "256",
                                  "--data-path",
                                  "c",
                                  "--lr",
                                  "1e-3",
                                  "--train-iters",
                                  "1",
                                  "--bf16",
                                  "--global-batch-size",
                                  "32",
                                  "--micro-batch-size",
                                  micro};
  std::istringstream words(more);
  for (std::string word; words >> word;) {
    all.push_back(word);
  }
  return all;
}

PlannedMemory planned(const PretrainOptions& o, DeviceKind kind) {
  return plan_memory(make_plan(o, kVocabulary), sample_fields(o), kind);
}

Room gpu_with(std::int64_t bytes) { return {DeviceKind::cuda, bytes, std::int64_t{1} << 40}; }

TEST(WhatFits, EverySettingThatIsNamedFits) {
  const PretrainCase c(flags_of("16"));
  ASSERT_EQ(c.error, "");
  const std::int64_t all = planned(c.options, DeviceKind::cuda).total();
  int named = 0;
  for (const double share : {0.9, 0.6, 0.4, 0.2, 0.1}) {
    const Room room = gpu_with(static_cast<std::int64_t>(share * static_cast<double>(all)));
    for (const std::string& setting : settings_that_fit(c.options, kVocabulary, room)) {
      // A later flag counts.
      const PretrainCase changed(flags_of("16", setting));
      ASSERT_EQ(changed.error, "") << setting;
      EXPECT_LE(planned(changed.options, room.kind).total(), room.device) << setting;
      ++named;
    }
  }
  EXPECT_GE(named, 8);
}

TEST(WhatFits, LongSequencesFitInChunks) {
  const PretrainCase c(flags_of("1", "--seq-length 16384"));
  ASSERT_EQ(c.error, "");
  const PretrainCase least(
      flags_of("1",
               "--seq-length 16384 --ds-sequence-parallel-fpdt --ds-sequence-parallel-fpdt-chunk-"
               "size 2048"));
  ASSERT_EQ(least.error, "");
  const Room room = gpu_with(planned(least.options, DeviceKind::cuda).total());
  const std::vector<std::string> settings = settings_that_fit(c.options, kVocabulary, room);
  ASSERT_FALSE(settings.empty());
  EXPECT_EQ(settings.front(),
            "--ds-sequence-parallel-fpdt --ds-sequence-parallel-fpdt-chunk-size 2048");
}

TEST(WhatFits, SaysSoWhereNothingDoes) {
  const PretrainCase c(flags_of("16"));
  EXPECT_TRUE(settings_that_fit(c.options, kVocabulary, gpu_with(1 << 20)).empty());
  EXPECT_NE(advice(c.options, kVocabulary, gpu_with(1 << 20)).find("more ranks"),
            std::string::npos);
}

TEST(WhatFits, TheHostsMemoryCountsToo) {
  const PretrainCase c(flags_of("1", "--cpu-optimizer"));
  ASSERT_EQ(c.error, "");
  const PlannedMemory memory = planned(c.options, DeviceKind::cuda);
  EXPECT_GT(memory.on_host, 0);
  EXPECT_EQ(memory.optimizer, 0);
  EXPECT_TRUE((Room{DeviceKind::cuda, memory.total(), memory.on_host}.holds(memory)));
  EXPECT_FALSE((Room{DeviceKind::cuda, memory.total(), memory.on_host - 1}.holds(memory)));
  EXPECT_FALSE((Room{DeviceKind::cuda, memory.total() - 1, memory.on_host}.holds(memory)));
  // A CPU has one memory for both.
  EXPECT_FALSE((Room{DeviceKind::cpu, memory.total(), memory.on_host}.holds(memory)));
}

TEST(WhatFits, TheLargestMicroBatchIsTheLargest) {
  const PretrainCase c(flags_of("1"));
  PretrainOptions o = c.options;
  o.batch.micro = 8;
  const Room room = gpu_with(planned(o, DeviceKind::cuda).total() * 112 / 100);
  EXPECT_EQ(largest_micro_batch(c.options, kVocabulary, room), 8);
  EXPECT_THROW(largest_micro_batch(c.options, kVocabulary, gpu_with(1 << 20)), Error);
}

}  // namespace
}  // namespace bloomery
