// Whole runs of `bloomery pretrain` on a corpus of little stories.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "apps/pretrain/run_case.h"
#include "base/file.h"
#include "checkpoint/compare.h"
#include "device/device.h"

namespace bloomery {
namespace {

class PretrainRun : public ::testing::Test, public RunCase {};
class ResumedRun : public PretrainRun, public ::testing::WithParamInterface<const char*> {};

TEST_P(ResumedRun, ResumesBitForBit) {
  const std::string options = std::string(GetParam()) +
                              " --rampup-batch-size 2 2 12 --global-batch-size 6 --train-samples "
                              "60 --initial-loss-scale 65536";
  expect_exact_resume([this](const std::string& more) { return train(more); },
                      options + saved_in("whole"), options + saved_in("parts"));
  expect_same_checkpoints("whole", "parts");
}

TEST_P(ResumedRun, ResumesBitForBitOnCuda) {
  if (num_cuda_devices() == 0) {
    GTEST_SKIP() << "no GPU on this machine";
  }
  const std::string options = std::string(GetParam()) +
                              " --device cuda --rampup-batch-size 2 2 12 --global-batch-size 6 "
                              "--train-samples 60 --initial-loss-scale 65536";
  expect_exact_resume([this](const std::string& more) { return train(more); },
                      options + saved_in("whole"), options + saved_in("parts"));
  expect_same_checkpoints("whole", "parts");
}

std::string case_name(const ::testing::TestParamInfo<const char*>& info) {
  const std::string names[] = {"fp32", "bf16",           "fp16",   "sgd_recompute",
                               "fp8",  "bf16_gradients", "chunks", "experts"};
  return names[info.index];
}
INSTANTIATE_TEST_SUITE_P(Dtypes, ResumedRun,
                         ::testing::Values("", "--bf16", "--fp16",
                                           "--optimizer sgd --recompute-granularity full "
                                           "--recompute-method uniform",
                                           "--bf16 --fp8-format hybrid --fp8-amax-history-len 5 "
                                           "--fp8-amax-compute-algo max --fp8-interval 2",
                                           "--bf16 --grad-dtype bf16",
                                           "--bf16 --ds-sequence-parallel-fpdt "
                                           "--ds-sequence-parallel-fpdt-chunk-size 12 "
                                           "--ds-sequence-parallel-fpdt-offloading "
                                           "--checkpoint-in-cpu",
                                           "--bf16 --num-experts 4 --expert-interval 1 --topk 2 "
                                           "--moe-train-capacity-factor 0.75"),
                         case_name);

// Replayed, launched, and replayed in two parts: the same numbers.
TEST_P(ResumedRun, GraphsChangeNoBitOnCuda) {
  if (num_cuda_devices() == 0) {
    GTEST_SKIP() << "no GPU on this machine";
  }
  const std::string options = std::string(GetParam()) +
                              " --device cuda --global-batch-size 6 --train-iters 30 "
                              "--eval-interval 11 --initial-loss-scale 65536 --cuda-graphs ";
  const Outcome launched = train(options + "off" + saved_in("launched"));
  ASSERT_EQ(launched.code, kFinished) << launched.errors;
  const std::string graphs = "passes are replayed as CUDA graphs";
  EXPECT_FALSE(launched.says(graphs));
  std::string replayed;
  expect_exact_resume(
      [&](const std::string& more) {
        Outcome run = train(more);
        replayed += run.out;
        return run;
      },
      options + "on" + saved_in("replayed"), options + "on" + saved_in("parts"));
  if (const bool captures = options.find("fpdt") == options.npos; captures) {
    EXPECT_EQ(all_matches(replayed, "(" + graphs + ")").size(), 2u) << replayed;
  } else {
    EXPECT_NE(replayed.find("not replayed as CUDA graphs: "), replayed.npos) << replayed;
  }
  const std::vector<std::string> a = losses(launched.out), b = losses(replayed);
  ASSERT_EQ(a.size(), 30u);
  EXPECT_EQ(a, std::vector(b.begin(), b.begin() + 30));
  expect_same_checkpoints("launched", "replayed");
  expect_same_checkpoints("launched", "parts");
}

TEST_F(PretrainRun, SaysWhyNothingIsReplayed) {
  const Outcome outcome = train("--train-iters 2 --enable-cuda-graph");
  EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
  EXPECT_TRUE(outcome.says("passes are not replayed as CUDA graphs: there is no GPU"))
      << outcome.out;
}

TEST_F(PretrainRun, TwoRanksAsThreadsGiveTheLossesOfOne) {
  const std::string options = "--global-batch-size 8 --train-iters 12";
  const Outcome one = train(options);
  const Outcome two = train(options + " --ranks-as-threads 2" + saved_in("two"));
  ASSERT_EQ(one.code, kFinished) << one.errors;
  ASSERT_EQ(two.code, kFinished) << two.errors;
  const std::vector<std::string> a = losses(one.out), b = losses(two.out);
  ASSERT_EQ(a.size(), 12u);
  ASSERT_EQ(b.size(), 12u);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(std::stod(a[i]), std::stod(b[i]), 1e-5 * std::stod(a[i])) << "step " << i + 1;
  }
  EXPECT_LT(std::stod(a.back()), 0.95 * std::stod(a.front()));
  EXPECT_EQ(newest("two").state().consumed_samples, 96);
}

// The ranks ask each other for the wish to stop while a pipeline evaluates: between its passes, for
// inside them the stages in the middle would wait for each other.
TEST_F(PretrainRun, EvaluatesInAPipelineOfFourStages) {
  const std::string options = "--num-layers 4 --global-batch-size 8 --train-iters 4 --eval-iters 2";
  const Outcome one = train(options);
  const Outcome four = train(options + " --ranks-as-threads 4 --pipeline-model-parallel-size 4");
  ASSERT_EQ(four.code, kFinished) << four.errors;
  const auto a = validations(one.out), b = validations(four.out);
  ASSERT_EQ(a.size(), b.size());
  EXPECT_GE(a.size(), 2u);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto loss = [](const std::string& line) {
      return std::stod(line.substr(line.find("value: ") + 7));
    };
    EXPECT_NEAR(loss(a[i]), loss(b[i]), 1e-5 * loss(a[i]));
  }
  // "Per GPU" is per rank, as Megatron-DeepSpeed counts, whatever the ranks divide.
  const auto figure = [&](const std::string& name) {
    return std::stod(four.out.substr(four.out.find(name) + name.size()));
  };
  const double tokens = 32 * figure("samples per second: ");
  EXPECT_NEAR(4 * figure("per second (tgs): "), tokens, 0.01 * tokens);
}

TEST_F(PretrainRun, ABackendForGpusIsLeftOutOnACpu) {
  const Outcome outcome = train_loudly(
      "--global-batch-size 8 --train-iters 2 --ranks-as-threads 2 --distributed-backend nccl");
  EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
  EXPECT_TRUE(outcome.says("--distributed-backend nccl is ignored")) << outcome.errors;
}

TEST_F(PretrainRun, RefusesLayoutsThatDoNotFitTheRanks) {
  const auto refused = [this](const std::string& options, const std::string& why) {
    const Outcome outcome = train("--global-batch-size 8 --train-iters 2 " + options);
    EXPECT_EQ(outcome.code, kBadInput) << options;
    EXPECT_TRUE(outcome.says(why)) << outcome.errors;
  };
  refused("--tensor-model-parallel-size 2", "start 2 (mpirun -np 2");
  refused("--tensor-model-parallel-size 4 --ranks-as-threads 9", "start 8 (mpirun -np 8");
  refused("--pipeline-model-parallel-size 64 --ranks-as-threads 64", "layers has at most");
}

TEST_F(PretrainRun, TwoRanksAsThreadsShareAGpuOnCuda) {
  if (num_cuda_devices() == 0) {
    GTEST_SKIP() << "no GPU on this machine";
  }
  const std::string options = "--device cuda --global-batch-size 8 --train-iters 12";
  const std::vector<std::string> a = losses(train(options).out);
  const std::vector<std::string> b = losses(train(options + " --ranks-as-threads 2").out);
  ASSERT_EQ(a.size(), 12u);
  ASSERT_EQ(b.size(), 12u);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(std::stod(a[i]), std::stod(b[i]), 1e-4 * std::stod(a[i])) << "step " << i + 1;
  }
}

TEST_F(PretrainRun, EvaluatesEveryIntervalAndAtTheEnd) {
  const Outcome outcome = train("--train-iters 10");
  EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
  ASSERT_EQ(validations(outcome.out).size(), 4u) << outcome.out;
  EXPECT_TRUE(outcome.says("on 2-sample draw from test set"));
  EXPECT_EQ(validations(train("--train-iters 10 --eval-iters 0").out).size(), 0u);
  const Outcome only = train("--train-iters 10 --skip-train");
  EXPECT_EQ(losses(only.out).size(), 0u);
  EXPECT_EQ(validations(only.out).size(), 2u);
}

TEST_F(PretrainRun, StartsFromRandomValuesWhereThereIsNoCheckpoint) {
  const Outcome outcome = train("--train-iters 2" + saved_in("new"));
  EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
  EXPECT_TRUE(outcome.says("will not load any checkpoints and will start from random"));
  const Outcome missing = train("--train-iters 2 --exit-on-missing-checkpoint" + saved_in("none"));
  EXPECT_EQ(missing.code, kBadInput);
  EXPECT_TRUE(missing.says("there is no checkpoint in"));
}

TEST_F(PretrainRun, TakesFromACheckpointWhatIsAsked) {
  ASSERT_EQ(train("--train-iters 4" + saved_in("run")).code, kFinished);
  const std::string load = " --load " + at("run") + " ";
  const Outcome other = train("--train-iters 8" + load);
  EXPECT_EQ(other.code, kBadInput);
  EXPECT_TRUE(other.says("samples of decay: 16 here, 8 in the checkpoint")) << other.errors;
  const auto iterations = [](const Outcome& o) { return losses(o.out).size(); };
  EXPECT_EQ(iterations(train("--train-iters 8 --override-opt_param-scheduler" + load)), 4u);
  EXPECT_EQ(iterations(train("--train-iters 8 --use-checkpoint-opt_param-scheduler" + load)), 4u);
  EXPECT_EQ(iterations(train("--train-iters 8 --no-load-optim" + load)), 4u);
  EXPECT_EQ(iterations(train("--train-iters 8 --finetune" + load)), 8u);
  const Outcome model = train("--train-iters 4 --ffn-hidden-size 64" + load);
  EXPECT_EQ(model.code, kBadInput);
  EXPECT_TRUE(model.says("holds another model")) << model.errors;
  const Outcome activation = train("--train-iters 4 --squared-relu" + load);
  EXPECT_EQ(activation.code, kBadInput);
  EXPECT_TRUE(activation.says("activation: squared-relu here")) << activation.errors;
  const Outcome sgd = train("--train-iters 4 --optimizer sgd" + load);
  EXPECT_EQ(sgd.code, kBadInput);
  EXPECT_TRUE(sgd.says("another kind of optimizer")) << sgd.errors;
}

TEST_F(PretrainRun, FallsBackToTheLastGoodCheckpointAndNeverStartsOver) {
  const std::string options = "--train-iters 6 --save-interval 3" + saved_in("run");
  ASSERT_EQ(train(options).code, kFinished);
  const auto damage = [this](const char* step) {
    std::fstream file(at("run") + "/" + step + "/rank-0.safetensors",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-5, std::ios::end);
    file.put('x');
  };
  damage("step-6");
  const Outcome outcome = train(options);
  EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
  EXPECT_TRUE(outcome.says("successfully loaded checkpoint from " + at("run") + " at iteration 3"));
  EXPECT_EQ(losses(outcome.out).size(), 3u);
  damage("step-3");
  damage("step-6");
  EXPECT_EQ(train(options).code, kBadInput);
}

TEST_F(PretrainRun, SkipsAndCountsStepsWithoutANumber) {
  // Infinite weights after the first update make every later loss and gradient no number.
  const std::string options = "--train-iters 4 --clip-grad 0 --lr 1e30 --eval-iters 0";
  const Outcome outcome = train(options + saved_in("run"));
  EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
  EXPECT_EQ(newest("run").state().extra.at("skipped_steps"), "3");
  EXPECT_TRUE(outcome.says("number of skipped iterations:   1 | number of nan iterations:   1"))
      << outcome.out;
  const Outcome stopped = train(options + " --check-for-nan-in-loss-and-grad");
  EXPECT_EQ(stopped.code, kFailed);
  EXPECT_TRUE(stopped.says("--check-for-nan-in-loss-and-grad asks")) << stopped.errors;
}

TEST_F(PretrainRun, RunThatNoLongerLearnsFails) {
  const std::string options = "--clip-grad 0 --lr 1e30 --eval-iters 0 --train-iters ";
  const Outcome to_the_end = train(options + "9" + saved_in("end"));
  EXPECT_EQ(to_the_end.code, kFailed);
  EXPECT_TRUE(to_the_end.says("8 steps in a row, from iteration 2 on, were skipped because"))
      << to_the_end.errors;
  EXPECT_EQ(newest("end").state().step, 9) << "what was learnt before is saved";
  const Outcome ended = train(options + "50 --stop-after-skipped 7" + saved_in("ended"));
  EXPECT_EQ(ended.code, kFailed);
  EXPECT_TRUE(ended.says("7 steps in a row")) << ended.errors;
  EXPECT_EQ(losses(ended.out).size(), 1u);
  EXPECT_TRUE(std::filesystem::exists(at("ended") + "/report.html"));
}

TEST_F(PretrainRun, OverflowAtTheSmallestLossScaleEndsAsInDeepspeed) {
  const std::string options =
      "--fp16 --initial-loss-scale 4 --hysteresis 1 --clip-grad 0 --lr 1e30 "
      "--eval-iters 0 --train-iters 40 --stop-after-skipped 20 ";
  const Outcome ended = train(options + "--stop-at-min-loss-scale");
  EXPECT_EQ(ended.code, kFailed);
  EXPECT_TRUE(ended.says("not finite at the lowest loss scale, 1")) << ended.errors;
  const Outcome further = train(options);
  EXPECT_EQ(further.code, kFailed);
  EXPECT_TRUE(further.says("20 steps in a row")) << further.errors;
}

// None of the log files can be written, then all: the run is the same, and no line is lost.
TEST_F(PretrainRun, NoLogFileEndsTraining) {
  std::filesystem::create_directories(at("run"));
  for (const char* name : {"metrics.jsonl", "report.html", "trace.json"}) {
    std::filesystem::create_directory(at("run") + "/" + name);  // a file cannot have this name
  }
  const std::string options = "--train-iters 4 --save-interval 2 --profile ";
  const Outcome outcome = train(options + "--tensorboard-dir " + at("events") + saved_in("run"));
  EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
  EXPECT_EQ(newest("run").state().step, 4);
  EXPECT_EQ(losses(outcome.out), losses(train(options + saved_in("other")).out));
}

TEST_F(PretrainRun, MetricsOfAnEarlierRunAreKept) {
  const std::string options = "--train-iters 3 --eval-iters 0 --tensorboard-dir " + at("run");
  ASSERT_EQ(train(options).code, kFinished);
  const std::string first = read_file(at("run") + "/metrics.jsonl");
  ASSERT_EQ(train(options + " --seed 7").code, kFinished);
  EXPECT_EQ(read_file(at("run") + "/metrics-earlier.jsonl"), first);
  EXPECT_EQ(all_matches(read_file(at("run") + "/metrics.jsonl"), "\"kind\":\"(train)\"").size(),
            3u);
}

TEST_F(PretrainRun, ReportShowsWhatTheModelWrites) {
  const Outcome outcome = train("--train-iters 4 --report-samples Once" + saved_in("run"));
  ASSERT_EQ(outcome.code, kFinished) << outcome.errors;
  const std::string page = read_file(at("run") + "/report.html");
  EXPECT_NE(page.find("<b>Once</b>"), std::string::npos);
  EXPECT_NE(page.find("iteration 4: checkpoint"), std::string::npos);
}

TEST_F(PretrainRun, StopsWhenAskedTo) {
  const std::string file = at("stop");
  std::ofstream(file).put('x');
  const Outcome outcome = train("--train-iters 50 --kill-switch-file " + file + saved_in("run"));
  EXPECT_EQ(outcome.code, kStoppedEarly) << outcome.errors;
  EXPECT_EQ(newest("run").state().step, 1);
  EXPECT_TRUE(outcome.says("[exiting program at iteration 1] datetime: "));
}

// Makes a file when a text has been written.
class Trigger : public std::stringbuf {
 public:
  Trigger(std::string text, std::string file) : text_(std::move(text)), file_(std::move(file)) {}

 private:
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    const std::streamsize written = std::stringbuf::xsputn(bytes, count);
    if (view().find(text_) != std::string_view::npos) {
      std::ofstream(file_).put('x');
    }
    return written;
  }
  std::string text_, file_;
};

TEST_F(PretrainRun, SavesAtOnceWhenAskedToStopWhileItEvaluates) {
  for (const std::string ranks : {"1", "2"}) {
    const std::string save = "run" + ranks;
    Trigger buffer(" iteration        5/      50 |", at("stop" + ranks));
    std::ostream out(&buffer);
    std::ostringstream errors;
    const int code =
        run_bloomery(command("--train-iters 50 --global-batch-size 4 --ranks-as-threads " + ranks +
                             " --kill-switch-file " + at("stop" + ranks) + saved_in(save)),
                     out, errors);
    EXPECT_EQ(code, kStoppedEarly) << errors.str();
    EXPECT_EQ(newest(save).state().step, 5);
    const std::string text = buffer.str();
    EXPECT_EQ(validations(text).size(), 1u) << text;
    EXPECT_LT(text.find("saving checkpoint at iteration       5"),
              text.find("validation loss at iteration 5"));
  }
}

TEST_F(PretrainRun, SaysWhenNothingIsLeftToTrain) {
  const std::string options = "--train-iters 5 --save " + at("run");
  ASSERT_EQ(train(options).code, kFinished);
  const std::string folder = at("run");
  for (const std::string& load : {folder, folder + "/step-5"}) {
    const Outcome again = train(options + " --load " + load);
    EXPECT_EQ(again.code, kFinished) << again.errors;
    EXPECT_TRUE(again.says("nothing is left to train: the checkpoint is of iteration 5, and 5"));
    EXPECT_FALSE(again.says("saving checkpoint")) << load;
  }
  std::ifstream metrics(folder + "/metrics.jsonl");
  const std::string text{std::istreambuf_iterator<char>(metrics), {}};
  EXPECT_EQ(all_matches(text, "\"kind\":\"(validation)\"").size(), 2u) << text;
  EXPECT_EQ(all_matches(text, "\"kind\":\"(test)\"").size(), 1u) << text;
}

TEST_F(PretrainRun, ValidationGoesOnBehindTheAskedForLength) {
  ASSERT_EQ(train("--train-iters 6 --eval-iters 0 --save " + at("run")).code, kFinished);
  const Outcome shorter =
      train("--train-iters 4 --eval-iters 200 --override-opt_param-scheduler --load " + at("run"));
  EXPECT_EQ(shorter.code, kFinished) << shorter.errors;
  EXPECT_EQ(validations(shorter.out).size(), 2u) << shorter.out;
}

TEST_F(PretrainRun, EvaluatesACheckpointWhateverItsScheduleAndOptimizer) {
  ASSERT_EQ(train("--train-iters 4 --no-save-optim --save " + at("run")).code, kFinished);
  const Outcome outcome = train("--skip-train --lr 1 --load " + at("run"));
  EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
  EXPECT_TRUE(outcome.says("validation loss at iteration 4 on 2-sample draw from test set"));
}

TEST_F(PretrainRun, AScaleThatWasNoneIsNotTakenOver) {
  ASSERT_EQ(train("--train-iters 2 --eval-iters 0 --save " + at("run")).code, kFinished);
  const Outcome outcome = train(
      "--train-iters 3 --eval-iters 0 --fp16 --initial-loss-scale 128 "
      "--override-opt_param-scheduler --load " +
      at("run"));
  EXPECT_TRUE(outcome.says("loss scale: 128.0 |")) << outcome.out << outcome.errors;
}

TEST_F(PretrainRun, RefusesFoldersOfOtherModelsInsteadOfStartingAnew) {
  const auto make = [this](const std::string& folder, const char* file) {
    std::filesystem::create_directories(at(folder));
    std::ofstream(at(folder) + "/" + file) << "1";
    return " --load " + at(folder);
  };
  const Outcome hf = train("--train-iters 2" + make("hf", "config.json"));
  EXPECT_EQ(hf.code, kBadInput);
  EXPECT_TRUE(hf.says("config.json: not a JSON object")) << hf.errors;
  for (const char* file : {"latest_checkpointed_iteration.txt", "latest"}) {
    const Outcome other = train("--train-iters 2" + make(file + std::string("-folder"), file));
    EXPECT_EQ(other.code, kBadInput);
    EXPECT_TRUE(other.says("names the checkpoint")) << other.errors;
  }
  // What a run leaves that was killed before its first checkpoint.
  const std::string killed = make("new", "metrics.jsonl");
  EXPECT_EQ(train("--train-iters 2" + killed + " --save " + at("new")).code, kFinished);
}

TEST_F(PretrainRun, KeepsTheCheckpointsThatAreAskedFor) {
  const Outcome outcome =
      train("--train-iters 12 --save-interval 2 --keep-last 2 --keep-every 6" + saved_in("run"));
  ASSERT_EQ(outcome.code, kFinished) << outcome.errors;
  std::vector<std::int64_t> steps;
  for (const CheckpointEntry& entry : list_checkpoints(at("run"))) {
    steps.push_back(entry.step);
  }
  EXPECT_EQ(steps, (std::vector<std::int64_t>{6, 10, 12}));
}

TEST_F(PretrainRun, WritesWhatLogsAreAskedFor) {
  const Outcome outcome = train(
      "--train-iters 4 --timing-log-level 2 --log-params-norm --log-num-zeros-in-grad "
      "--log-optimizer-states-to-tensorboard --log-throughput --log-format nvidia "
      "--log-timers-to-tensorboard "
      "--loss-floor 1.5 --tensorboard-dir " +
      at("events") + saved_in("run"));
  ASSERT_EQ(outcome.code, kFinished) << outcome.errors;
  for (const char* part :
       {"params norm: ", "num zeros: ", "    forward-backward ......", "    optimizer ...",
        "    batch-generator ...", "memory (MB) | allocated: "}) {
    EXPECT_TRUE(outcome.says(part)) << part << "\n" << outcome.out;
  }
  std::ifstream events(std::filesystem::directory_iterator(at("events"))->path());
  const std::string scalars{std::istreambuf_iterator<char>(events), {}};
  for (const char* name : {"forward-compute-time", "optimizer-time", "optimizer/weight_l2"}) {
    EXPECT_NE(scalars.find(name), std::string::npos) << name;
  }
  std::ifstream metrics(at("run") + "/metrics.jsonl");
  const std::string text{std::istreambuf_iterator<char>(metrics), {}};
  EXPECT_EQ(all_matches(text, "(\"kind\":\"train\")").size(), 4u) << text;
  EXPECT_TRUE(std::filesystem::exists(at("run") + "/report.html"));
}

TEST_F(PretrainRun, SaysWhatIsWrongWithTheFolderOfEvents) {
  std::ofstream(at("file")).put('x');
  const Outcome outcome = train("--train-iters 2 --tensorboard-dir " + at("file"));
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_TRUE(outcome.says("--tensorboard-dir: cannot create the folder")) << outcome.errors;
  EXPECT_FALSE(outcome.says("building train, validation")) << outcome.out;
}

TEST_F(PretrainRun, SaysWhatIsWrongWithTheData) {
  const std::string corpus = corpus_folder().string();
  for (const char* name : {"/stories", "/stories.jsonl", "/stories_text_document.bin"}) {
    const Outcome missing = train("--train-iters 2 --data-path 1 " + corpus + name + " 1 " +
                                  corpus + "/stories_text_document");
    EXPECT_EQ(missing.code, kBadInput);
    EXPECT_TRUE(missing.says("--data-path: there is no corpus " + corpus + name));
    EXPECT_TRUE(missing.says("did you mean " + corpus + "/stories_text_document?"))
        << missing.errors;
    EXPECT_FALSE(missing.says("arguments")) << missing.out;  // nothing was begun
  }
  const Outcome split = train("--train-iters 2 --split 0,50,50");
  EXPECT_EQ(split.code, kBadInput);
  EXPECT_TRUE(split.says("no training data")) << split.errors;
}

// One whose ids all fit, and one that has fewer.
TEST_F(PretrainRun, RefusesACorpusOfAnotherTokenizer) {
  const std::string corpus = corpus_folder().string();
  const auto tokenizer = [&](const std::string& size) {
    const std::string folder = at("tokenizer" + size);
    EXPECT_EQ(run_command(words("tokenizer train --vocab-size " + size + " --input " + corpus +
                                "/tokenizer/tokenizer.json --input-format text --output " + folder))
                  .code,
              kFinished);
    return folder;
  };
  for (const std::string& other : {tokenizer("320"), tokenizer("260")}) {
    const Outcome refused = train("--train-iters 2 --save " + at("save") + " --tokenizer " + other);
    EXPECT_EQ(refused.code, kBadInput);
    for (const std::string& part :
         {corpus + "/stories_text_document was made with the tokenizer " + corpus + "/tokenizer",
          "not with " + other, std::string("--allow-tokenizer-mismatch")}) {
      EXPECT_TRUE(refused.says(part)) << refused.errors;
    }
    EXPECT_FALSE(std::filesystem::exists(at("save")));
  }
  const std::string allowed = "--train-iters 1 --allow-tokenizer-mismatch --tokenizer ";
  EXPECT_EQ(train(allowed + at("tokenizer320")).code, kFinished);
  const Outcome beyond = train(allowed + at("tokenizer260"));
  EXPECT_EQ(beyond.code, kBadInput);
  EXPECT_TRUE(beyond.says("they were made with another tokenizer")) << beyond.errors;
}

}  // namespace
}  // namespace bloomery
