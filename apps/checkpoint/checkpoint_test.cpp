#include "apps/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/common/command_case.h"
#include "base/temporary_name.h"
#include "checkpoint/checkpoint_case.h"

namespace bloomery {
namespace {

class CheckpointCommandTest : public ::testing::Test {
 protected:
  // Runs `bloomery checkpoint ARGUMENTS`, expects the exit code and returns output and errors.
  std::string run(Arguments arguments, int code = 0) {
    arguments.insert(arguments.begin(), "checkpoint");
    return expect_command(arguments, code);
  }
  std::string path(const std::string& name = "") const { return (folder_.path() / name).string(); }
  void flip_last_byte(const std::string& name) {
    std::string bytes = read_file(path(name));
    bytes.back() ^= 1;
    std::ofstream(path(name), std::ios::binary) << bytes;
  }

  TestFolder folder_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(CheckpointCommandTest, NoneFoundIsCodeTwo) {
  for (const char* command : {"list", "verify", "prune"}) {
    run({command, path()}, 2);
    run({command, path("absent")}, 2);
  }
  save_step(folder_.path(), 1);
  run({"diff", path(), path("absent")}, 2);
  run({"diff", path()}, 2);
}

TEST_F(CheckpointCommandTest, ListAndVerify) {
  save_step(folder_.path(), 5);
  save_step(folder_.path(), 12);
  std::filesystem::create_directory(path("step-13.tmp-1"));
  const std::string listed = run({"list", path(), "--json"});
  std::istringstream lines(listed);
  std::string first, second, third;
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_FALSE(std::getline(lines, third));
  EXPECT_EQ(nlohmann::json::parse(first)["step"], 5);
  EXPECT_EQ(nlohmann::json::parse(second)["consumed_samples"], 192);
  EXPECT_TRUE(contains(run({"list", path("step-12")}), "step-12"));
  EXPECT_TRUE(contains(run({"verify", path()}), "step-12: good (step 12, 7 tensors"));
  EXPECT_TRUE(contains(run({"verify", path("step-5") + "/"}), "good (step 5"));

  flip_last_byte("step-12/rank-0.safetensors");
  EXPECT_TRUE(contains(run({"list", path()}), "step-12"));
  const std::string bad = run({"verify", path()}, 2);
  EXPECT_TRUE(contains(bad, "step-5: good")) << bad;
  EXPECT_TRUE(contains(bad, "damaged: block 0 of 1")) << bad;
  EXPECT_TRUE(contains(bad, "1 of 2 checkpoints are damaged")) << bad;
  std::filesystem::remove(path("step-12/manifest.json"));
  EXPECT_TRUE(contains(run({"list", path()}), "it has no manifest.json"));
  run({"verify", path("step-12")}, 2);
}

TEST_F(CheckpointCommandTest, DiffOfStateOptionsAndTensors) {
  const TestFolder other;
  save_step(folder_.path(), 3);
  Snapshot snapshot = flat_snapshot(3);
  snapshot.state.options = R"({"lr":0.0001,"num-layers":2,"seed":1})";
  {
    CheckpointWriter writer(other.path(), single_rank_group(), {});
    writer.save(snapshot);
  }
  const std::string same = run({"diff", path(), other.path().string()});
  EXPECT_TRUE(contains(same, "7 tensors are equal, 0 differ")) << same;
  EXPECT_TRUE(contains(same, "option lr: 0.0003 | 0.0001")) << same;
  EXPECT_TRUE(contains(same, "option seed: (absent) | 1")) << same;

  std::vector<std::int64_t> counter = {-5};
  for (SnapshotPiece& piece : snapshot.pieces) {
    piece.data = piece.tensor == "counter" ? counter.data() : piece.data;
  }
  snapshot.state.step = 4;
  snapshot.state.extra["model"] = R"({"size": {"layers": 2, "hidden": 8}})";
  snapshot.state.extra["note"] = "[";
  {
    CheckpointWriter writer(other.path(), single_rank_group(), {});
    writer.save(snapshot);
  }
  const std::string changed = run({"diff", path("step-3"), other.path().string()}, 1);
  EXPECT_TRUE(contains(changed, "step: 3 | 4")) << changed;
  EXPECT_TRUE(contains(changed, "state model/size/layers: (absent) | 2\n")) << changed;
  EXPECT_TRUE(contains(changed, "state note: (absent) | \"[\"\n")) << changed;
  EXPECT_TRUE(contains(changed, "tensor counter: 1 of 1 elements differ")) << changed;
  EXPECT_TRUE(contains(changed, "6 tensors are equal, 1 differ")) << changed;
}

TEST_F(CheckpointCommandTest, PruneKeepsTwoGoodOnes) {
  for (int step = 1; step <= 5; ++step) {
    save_step(folder_.path(), step);
  }
  flip_last_byte("step-5/rank-0.safetensors");
  std::string rubbish = temporary_name(path("step-6")).string();
  rubbish[rubbish.find(".tmp-") + sizeof(".tmp-") + std::to_string(getpid()).size()] ^= 1;
  std::filesystem::create_directory(rubbish);  // of an earlier process with this one's number
  std::filesystem::create_directory(rubbish + "-elsewhere");
  run({"prune", path(), "--keep-last", "1"}, 2);
  const std::string plan = run({"prune", path(), "--dry-run", "--keep-every", "2"});
  EXPECT_TRUE(contains(plan, "step-1: would be removed")) << plan;
  EXPECT_FALSE(contains(plan, "step-2")) << plan;
  EXPECT_EQ(list_checkpoints(folder_.path()).size(), 5u);
  EXPECT_TRUE(contains(run({"prune", path()}), "a process on another machine"));
  const auto left = list_checkpoints(folder_.path());
  ASSERT_EQ(left.size(), 3u);  // 5 is damaged, so 3 and 4 are the two
  EXPECT_EQ(left[0].step, 3);
  EXPECT_FALSE(std::filesystem::exists(rubbish));
  EXPECT_TRUE(std::filesystem::exists(rubbish + "-elsewhere"));
}

}  // namespace
}  // namespace bloomery
