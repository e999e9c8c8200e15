// Runs that meet what earlier runs, full disks and moved files have left.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "apps/pretrain/run_case.h"
#include "base/file.h"
#include "train/plan/read_pretrain.h"
#include "train/run/pretrain.h"

namespace bloomery {
namespace {

class DurableRun : public ::testing::Test, public RunCase {};

// Tried as a new user would: a second run into the folder of a longer one.
TEST_F(DurableRun, NothingOfAnEarlierRunIsLost) {
  const std::string run = " --save " + at("run") + " --save-interval 2 --keep-last 2 ";
  ASSERT_EQ(train("--train-iters 8" + run).code, kFinished);
  const std::string metrics = read_file(at("run") + "/metrics.jsonl");
  const auto names = visible_names(at("run"));
  const std::string into = " --train-iters 4 " + run;
  for (const std::string& refused : {into, into + " --finetune --load " + at("run"),
                                     into + " --load " + at("run") + "/step-6"}) {
    const Outcome outcome = train(refused);
    EXPECT_EQ(outcome.code, kBadInput) << refused;
    for (const char* way : {"give another --save", "--load ", "--fork"}) {
      EXPECT_TRUE(outcome.says(way)) << outcome.errors;
    }
    EXPECT_FALSE(outcome.says("iteration        1/")) << outcome.out;
    EXPECT_EQ(visible_names(at("run")), names) << refused;
    EXPECT_EQ(read_file(at("run") + "/metrics.jsonl"), metrics) << refused;
  }
  // A run that cannot start moves nothing, also with --fork.
  const Outcome other = train(into + " --fork --num-layers 3 --load " + at("run") + "/step-6");
  EXPECT_EQ(other.code, kBadInput);
  EXPECT_TRUE(other.says("holds another model")) << other.errors;
  EXPECT_EQ(visible_names(at("run")), names);
  const Outcome fork = train(into + " --fork");
  ASSERT_EQ(fork.code, kFinished) << fork.errors;
  EXPECT_EQ(newest("run").state().step, 4);
  EXPECT_EQ(newest("run/earlier-1").state().step, 8);
  EXPECT_EQ(read_file(at("run/earlier-1") + "/metrics.jsonl"), metrics);
  // The folder goes on as the second run's; the first one's can be gone on with as well.
  const Outcome second =
      train("--train-iters 6 --override-opt_param-scheduler --load " + at("run") + run);
  EXPECT_EQ(second.code, kFinished) << second.errors;
  EXPECT_EQ(newest("run").state().step, 6);
  const Outcome back = train("--train-iters 8 --save-interval 2 --load " + at("run/earlier-1") +
                             "/step-6 --fork --save " + at("run/earlier-1"));
  EXPECT_EQ(back.code, kFinished) << back.errors;
  expect_same_checkpoints("run/earlier-1", "run/earlier-1/earlier-1");
}

TEST_F(DurableRun, ADryRunForeseesARefusedFolder) {
  const std::string run = " --save " + at("run") + " --save-interval 2 ";
  ASSERT_EQ(train("--train-iters 4" + run).code, kFinished);
  const std::string dry = "--train-iters 4 --dry-run" + run;
  for (const std::string& refused :
       {std::string(), " --load " + at("run") + "/step-2", " --finetune --load " + at("run")}) {
    const Outcome outcome = train(dry + refused);
    EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
    EXPECT_TRUE(outcome.says("already holds")) << refused << outcome.out;
  }
  for (const std::string& good : {" --load " + at("run"), " --load " + at("run") + "/step-4",
                                  " --fork --load " + at("run") + "/step-2"}) {
    EXPECT_FALSE(train(dry + good).says("already holds")) << good;
  }
}

// What was passed over as damaged does not become the newest again.
TEST_F(DurableRun, GoesOnBehindADamagedCheckpoint) {
  const std::string run = "--train-iters 6 --save-interval 2 " + saved_in("run");
  ASSERT_EQ(train(run).code, kFinished);
  std::filesystem::resize_file(at("run") + "/step-6/rank-0.safetensors", 100);
  const Outcome again = train_loudly(run);
  EXPECT_EQ(again.code, kFinished) << again.errors;
  EXPECT_TRUE(again.says("Skipping unreadable checkpoint")) << again.errors;
  EXPECT_TRUE(again.says("earlier-1")) << again.errors;
  EXPECT_EQ(newest("run").state().step, 6);
  EXPECT_TRUE(std::filesystem::exists(at("run") + "/earlier-1/step-6"));
}

TEST_F(DurableRun, CheckpointsCarryTheirTokenizer) {
  std::filesystem::copy(corpus_folder() / "tokenizer", at("words"),
                        std::filesystem::copy_options::recursive);
  const std::string run =
      "--train-iters 2 --eval-iters 0 --tokenizer " + at("words") + saved_in("run");
  ASSERT_EQ(train(run).code, kFinished);
  std::filesystem::remove_all(at("words"));  // and another one, trained into the same place
  ASSERT_EQ(
      run_command(words("tokenizer train --vocab-size 299 --input " +
                        (corpus_folder() / "stories.jsonl").string() + " --output " + at("words")))
          .code,
      kFinished);
  const Outcome resumed = train(run + " --allow-tokenizer-mismatch");  // with the corpus
  EXPECT_EQ(resumed.code, kBadInput);
  EXPECT_TRUE(resumed.says("the tokenizer is not the one that")) << resumed.errors;
  std::filesystem::remove_all(at("words"));
  std::filesystem::rename(at("run"), at("moved"));
  const Outcome text = run_command(
      words("generate --load " + at("moved") + " --prompt Tom --out-seq-length 8 --device cpu"));
  EXPECT_EQ(text.code, kFinished) << text.errors;
}

TEST_F(DurableRun, PaddingRowsOfTheVocabularyResumeExactly) {
  const std::string padded =
      "--train-iters 10 --padded-vocab-in-softmax --make-vocab-size-divisible-by 64 ";
  expect_exact_resume([this](const std::string& more) { return train(more); },
                      padded + saved_in("whole"), padded + saved_in("parts"));
  expect_same_checkpoints("whole", "parts");
  EXPECT_TRUE(newest("whole").contains("embedding.tokens.weight/padding"));
  const Outcome other = train_loudly(
      "--train-iters 11 --padded-vocab-in-softmax --make-vocab-size-divisible-by 128 "
      "--override-opt_param-scheduler --load " +
      at("whole"));
  EXPECT_TRUE(other.says("no longer bit for bit")) << other.errors;
}

TEST_F(DurableRun, ScalesOfFp8AreKeptOrSaidToStartAnew) {
  const std::string run = "--train-iters 4 --eval-iters 0 --bf16 ";
  const std::string more = "--train-iters 6 --eval-iters 0 --bf16 --override-opt_param-scheduler ";
  ASSERT_EQ(train(run + saved_in("bf16")).code, kFinished);
  ASSERT_EQ(train(run + "--fp8-hybrid --ranks-as-threads 2 --tensor-model-parallel-size 2" +
                  saved_in("fp8"))
                .code,
            kFinished);
  const CheckpointReader reader = newest("fp8");
  ASSERT_TRUE(reader.contains("blocks.1.mlp.down.weight/fp8_scales"));
  EXPECT_EQ(reader.tensor("blocks.1.mlp.down.weight/fp8_scales").shape, (Shape{3, 3}));

  const Outcome same = train_loudly(more + "--fp8-hybrid --load " + at("fp8"));
  EXPECT_EQ(same.code, kFinished) << same.errors;
  EXPECT_FALSE(same.says("start anew")) << same.errors;
  const Outcome none = train_loudly(more + "--fp8-e4m3 --load " + at("bf16"));
  EXPECT_TRUE(none.says("has no scales of fp8: they start anew")) << none.errors;
  const Outcome longer =
      train_loudly(more + "--fp8-hybrid --fp8-amax-history-len 9 --load " + at("fp8"));
  EXPECT_TRUE(longer.says("of another --fp8-format or history length: they start anew"))
      << longer.errors;
  const Outcome other = train_loudly(more + "--fp8-e4m3 --load " + at("fp8"));
  EXPECT_TRUE(other.says("of another --fp8-format or")) << other.errors;
  EXPECT_EQ(train(more + "--load " + at("fp8")).code, kFinished) << "the weights are those of bf16";
}

TEST_F(DurableRun, LayersThatDoNotFitFp8AreSaid) {
  const Outcome outcome = train_loudly(
      "--train-iters 2 --eval-iters 0 --bf16 --fp8-format hybrid --hidden-size 40 "
      "--ffn-hidden-size 64");
  EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
  EXPECT_TRUE(
      outcome.says("fp8: 8 linear layers compute in bf16, because sizes are not multiples of 16: "
                   "blocks.0.attention.qkv.weight and others"))
      << outcome.errors;
}

// A checkpoint of a machine that computed its products in ways which are unknown here.
TEST_F(DurableRun, SaysWhatIsNotComputedAsBefore) {
  ASSERT_EQ(train("--train-iters 2 --eval-iters 0" + saved_in("here")).code, kFinished);
  const CheckpointReader reader = newest("here");
  Snapshot snapshot{.state = reader.state(), .pieces = {}};
  std::istringstream choices(std::exchange(snapshot.state.choices, ""));
  for (std::string line; std::getline(choices, line);) {
    snapshot.state.choices += line.substr(0, line.find(' ')) + " abacus 1 2\n";
  }
  snapshot.state.machine = "an abacus";
  for (const auto& [name, tensor] : reader.manifest().tensors) {
    const auto bytes = std::make_shared<std::vector<std::byte>>(tensor.bytes());
    reader.read(name, Box::whole(tensor.shape), *bytes);
    snapshot.pieces.push_back({.tensor = name,
                               .dtype = tensor.dtype,
                               .box = Box::whole(tensor.shape),
                               .data = bytes->data(),
                               .owner = bytes});
  }
  snapshot.files = read_tokenizer_files({.path = (corpus_folder() / "tokenizer").string()});
  CheckpointWriter writer(at("elsewhere"), single_rank_group(), {});
  writer.save(snapshot);
  ASSERT_TRUE(writer.finish()->committed);
  const Outcome outcome = train_loudly(
      "--train-iters 3 --eval-iters 0 --override-opt_param-scheduler --load " + at("elsewhere"));
  EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
  EXPECT_TRUE(outcome.says("not computed as in the checkpoint's run (an abacus)"))
      << outcome.errors;
}

// Lets files grow to 2000 bytes only, from the first save that is announced to the second.
class FullForOneSave : public std::stringbuf {
 public:
  FullForOneSave() {
    getrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, SIG_IGN);
  }
  ~FullForOneSave() override {
    setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, SIG_DFL);
  }

 protected:
  int sync() override {
    const auto saves = all_matches(str(), "(saving checkpoint at iteration)").size();
    const struct rlimit small { .rlim_cur = 2000, .rlim_max = before_.rlim_max };
    setrlimit(RLIMIT_FSIZE, saves == 1 ? &small : &before_);
    return 0;
  }

 private:
  struct rlimit before_ {};
};

TEST_F(DurableRun, TheLastSaveIsTriedTwice) {
  Arguments arguments = command("--train-iters 3 --eval-iters 0" + saved_in("run"));
  arguments.erase(arguments.begin());  // "pretrain"
  std::erase(arguments, "--device");
  std::erase(arguments, "cpu");
  const auto threads = std::ranges::find(arguments, "--num-threads");
  arguments.erase(threads, threads + 2);
  PretrainOptions options;
  OptionTable table;
  describe(table, options);
  const auto notes = read_pretrain(table, options, arguments, {});
  FullForOneSave disk;
  std::ostream out(&disk);
  const RunEnd end =
      pretrain(options, table, notes,
               {.device = {.num_threads = 1}, .stop_requested = [] { return false; }, .out = out});
  EXPECT_EQ(end, RunEnd::finished) << disk.str();
  EXPECT_EQ(all_matches(disk.str(), "(saving checkpoint at iteration)").size(), 2u);
  EXPECT_EQ(newest("run").state().step, 3);
  EXPECT_NE(newest("run").state().machine.find("CPU"), std::string::npos);
}

}  // namespace
}  // namespace bloomery
