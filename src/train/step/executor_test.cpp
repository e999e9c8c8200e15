#include "train/step/executor.h"

#include <gtest/gtest.h>

#include <map>

#include "train/step/rank_case.h"

namespace bloomery::testing {
namespace {

using Work = Instruction::Work;

// Which samples were reported, and which losses.
class Recorder final : public PassReader {
 public:
  explicit Recorder(Stream& stream) : stream_(stream) {}
  void read(const Batch& batch, const Metrics& metrics) override {
    samples.push_back(batch.samples.to_host<std::int64_t>(stream_).front());
    for (const Metrics::Entry& entry : metrics.entries()) {
      losses.push_back(entry.value.to_host<float>(stream_).front());
    }
  }

  std::vector<std::int64_t> samples;
  std::vector<float> losses;

 private:
  Stream& stream_;
};

struct Found {
  std::vector<std::int64_t> asked, samples;
  std::vector<float> losses, gradients;
  std::map<std::string, int> contributions;
};

Found run(Executor& executor, Stage& stage, std::span<const Instruction> list) {
  Found found;
  Recorder recorder(stage.stream());
  std::vector<Parameter*> contributions;
  stage.store().begin_step(2);
  executor.run(list, {.batch =
                          [&](std::int64_t m) {
                            found.asked.push_back(m);
                            return samples_on(stage.stream())(m);
                          },
                      .reader = recorder,
                      .contributions = &contributions});
  found.samples = recorder.samples;
  found.losses = recorder.losses;
  found.gradients = gradients(stage);
  for (const Parameter* each : contributions) {
    ++found.contributions[each->name];
  }
  return found;
}

const std::vector<Instruction> kInTurn = {
    {Work::forward, 0}, {Work::backward, 0}, {Work::forward, 1}, {Work::backward, 1}};
const std::vector<Instruction> kAllForwardFirst = {
    {Work::forward, 0}, {Work::forward, 1}, {Work::backward, 0}, {Work::backward, 1}};
const std::vector<Instruction> kInTwoParts = {
    {Work::forward, 0}, {Work::backward_input, 0}, {Work::backward_weight, 0},
    {Work::forward, 1}, {Work::backward_input, 1}, {Work::backward_weight, 1}};

// Of a table that is not tied: a tied one gets the two parts of a gradient in another order.
TEST(Executor, GivesTheSameGradientsInEveryOrderOfInstructions) {
  RankOptions options = small_rank();
  options.model.vocabulary.untied = true;
  Stage stage(options, make_self_communicator());
  Executor executor(stage);
  const Found one = run(executor, stage, kInTurn);
  EXPECT_EQ(one.asked, (std::vector<std::int64_t>{0, 1})) << "once each, in rising order";
  EXPECT_EQ(one.samples, one.asked);
  EXPECT_EQ(one.losses.size(), 2u);
  for (const auto& list : {kAllForwardFirst, kInTwoParts}) {
    const Found other = run(executor, stage, list);
    EXPECT_EQ(other.asked, one.asked);
    EXPECT_EQ(other.losses, one.losses);
    EXPECT_EQ(other.gradients, one.gradients);
  }
}

TEST(Executor, NotesEachContribution) {
  Stage stage(small_rank(), make_self_communicator());
  Executor executor(stage);
  const Found found = run(executor, stage, kInTurn);
  for (const Parameter* each : stage.parameters()) {
    EXPECT_EQ(found.contributions.at(each->name), 2 * each->uses) << each->name;
  }
}

TEST(Executor, KeepsNothingOfForwardPassesAlone) {
  Stage stage(small_rank(), make_self_communicator());
  Executor executor(stage);
  Recorder recorder(stage.stream());
  stage.store().begin_pass(Pass::evaluation);
  const auto used = [&] { return stage.stream().memory()->statistics().used_bytes; };
  const std::size_t before = used();
  executor.run(std::vector<Instruction>{{Work::forward, 0}, {Work::forward, 1}},
               {.batch = samples_on(stage.stream()), .reader = recorder, .training = false});
  EXPECT_EQ(recorder.samples, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(used(), before);
}

TEST(Executor, ForgetsARunThatFailed) {
  Stage stage(small_rank(), make_self_communicator());
  Executor executor(stage);
  const Found whole = run(executor, stage, kInTurn);
  Recorder recorder(stage.stream());
  stage.store().begin_step(2);
  EXPECT_THROW(executor.run(kAllForwardFirst, {.batch = [&](std::int64_t m) -> Batch {
                                                 check(m == 0, "the data are used up");
                                                 return samples_on(stage.stream())(m);
                                               },
                                               .reader = recorder}),
               Error);
  EXPECT_EQ(run(executor, stage, kInTurn).gradients, whole.gradients);
}

TEST(Executor, RefusesAnotherPartOfTheSequencesThanTheRanks) {
  Stage stage(small_rank(), make_self_communicator());
  Executor executor(stage);
  Recorder recorder(stage.stream());
  stage.store().begin_pass(Pass::evaluation);
  const HostBatch host = random_batch(1, kLength, kVocabulary, 7, 0);
  const auto half = [&](std::int64_t) { return upload(host, stage.stream(), {.ulysses = 2}); };
  EXPECT_THROW(executor.run(std::vector<Instruction>{{Work::forward, 0}},
                            {.batch = half, .reader = recorder, .training = false}),
               Error);
}

}  // namespace
}  // namespace bloomery::testing
