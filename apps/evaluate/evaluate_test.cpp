#include "apps/evaluate/evaluate.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/common/command_case.h"
#include "base/file.h"
#include "evaluate/task_case.h"
#include "models/family.h"

namespace bloomery {
namespace {

class EvaluateTest : public ::testing::Test {
 protected:
  std::string run(Arguments arguments, int code = 0) {
    arguments.insert(arguments.begin(), {"evaluate", "--load", folder_.path("save"), "--device",
                                         "cpu", "--num-threads", "2"});
    return expect_command(arguments, code);
  }
  nlohmann::ordered_json json(Arguments arguments) {
    arguments.push_back("--json");
    return nlohmann::ordered_json::parse(run(std::move(arguments)));
  }
  static std::vector<std::string> keys(const nlohmann::ordered_json& object) {
    std::vector<std::string> names;
    for (const auto& [key, value] : object.items()) {
      names.push_back(key);
    }
    return names;
  }
  static bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  TaskFolder folder_;
  const std::string text_ =
      folder_.file("wiki.txt", "the rain , in ( the ) ring . there it ends\n");
  const std::string lines_ =
      folder_.file("lambada.jsonl", "{\"text\": \"the thin ring\"}\n{\"text\": \"in there\"}\n");
};

TEST_F(EvaluateTest, NamesForPrograms) {
  const auto perplexity = json({"--task", "PERPLEXITY", "--valid-data", text_});
  EXPECT_EQ(keys(perplexity), (std::vector<std::string>{"nll", "tokens", "words", "ppl"}));
  EXPECT_EQ(perplexity["words"], 12);
  const auto wikitext = json({"--task", "WIKITEXT103", "--valid-data", text_});
  EXPECT_EQ(keys(wikitext), (std::vector<std::string>{"loss", "ppl", "adjusted_ppl"}));
  const auto lambada = json({"--task", "LAMBADA", "--valid-data", lines_, "--strict-lambada"});
  EXPECT_EQ(keys(lambada), (std::vector<std::string>{"correct", "total", "accuracy"}));
  EXPECT_EQ(lambada["total"], 2);
}

TEST_F(EvaluateTest, TensorRanksDoNotShow) {
  const std::string ids = folder_.file("ids.json", "[[1, 2, 3], [4, 5, 6]]");
  for (const Arguments& task :
       {Arguments{"--task", "PERPLEXITY", "--valid-data", text_},
        Arguments{"--task", "LAMBADA", "--valid-data", lines_},
        Arguments{"--task", "LOGITS", "--ids", ids, "--output", folder_.path("logits.npy")}}) {
    const auto expected = json(task);
    Arguments divided = task;
    divided.insert(divided.end(), {"--tensor-model-parallel-size", "2"});
    const auto found = json(divided);
    EXPECT_EQ(keys(found), keys(expected));
    if (found.contains("nll")) {
      EXPECT_NEAR(found["nll"].get<double>(), expected["nll"].get<double>(), 1e-4);
    } else {
      EXPECT_EQ(found, expected);
    }
  }
}

// Micro-batches go to the ranks in turn; what they find is added up as on one rank.
TEST_F(EvaluateTest, DataRanksDoNotShow) {
  const std::string ids = folder_.file("ids.json", "[[1, 2, 3], [4, 5, 6], [7, 8, 9], [3, 2, 1]]");
  std::string passages;
  for (const char* text : {"the thin ring", "in there", "the rain", "there it ends in the ring"}) {
    passages += concat("{\"text\": \"", text, "\"}\n");
  }
  const std::string many = folder_.file("many.jsonl", passages);
  const std::string logits = folder_.path("logits.npy");
  for (const Arguments& task :
       {Arguments{"--task", "PERPLEXITY", "--valid-data", many},
        Arguments{"--task", "WIKITEXT103", "--valid-data", text_, "--overlapping-eval", "3"},
        Arguments{"--task", "LAMBADA", "--valid-data", many, "--strict-lambada"},
        Arguments{"--task", "LOGITS", "--ids", ids, "--output", logits}}) {
    const auto with = [&](const Arguments& ranks) {
      Arguments all = task;
      all.insert(all.end(), {"--micro-batch-size", "1"});
      all.insert(all.end(), ranks.begin(), ranks.end());
      std::string found = json(all).dump();
      return task[1] == "LOGITS" ? read_file(logits) : found;
    };
    const std::string expected = with({});
    EXPECT_EQ(with({"--ranks-as-threads", "3"}), expected) << task[1];
    EXPECT_EQ(with({"--ranks-as-threads", "4", "--tensor-model-parallel-size", "2"}),
              with({"--tensor-model-parallel-size", "2"}))
        << task[1];
  }
  EXPECT_TRUE(contains(run({"--task", "LAMBADA", "--valid-data", many, "--ranks-as-threads", "3",
                            "--tensor-model-parallel-size", "2"},
                           2),
                       "--ranks-as-threads 3 cannot be divided"));
}

TEST_F(EvaluateTest, LinesOfMegatron) {
  const std::string wikitext = run({"--task", "WIKITEXT103", "--valid-data", text_});
  EXPECT_TRUE(contains(wikitext, "\n validation results on WIKITEXT103 | avg loss: ")) << wikitext;
  EXPECT_TRUE(contains(wikitext, " | adjusted ppl: ")) << wikitext;
  EXPECT_TRUE(contains(wikitext, " | token ratio: ")) << wikitext;
  const std::string lambada = run({"--task", "LAMBADA", "--valid-data", lines_});
  EXPECT_TRUE(contains(lambada, " validation results on LAMBADA | number correct: ")) << lambada;
  EXPECT_TRUE(contains(lambada, " | total examples: 2.0000E+00 | avg accuracy: ")) << lambada;
  EXPECT_TRUE(contains(run({"--task", "PERPLEXITY", "--valid-data", text_}), "| ppl: "));
}

// What shared scripts of Megatron's say besides: the model's sizes, and options of training.
TEST_F(EvaluateTest, ScriptsOfMegatronRun) {
  run({"--task",
       "WIKITEXT103",
       "--num-layers",
       "2",
       "--hidden-size",
       "16",
       "--num-attention-heads",
       "2",
       "--seq-length",
       "24",
       "--max-position-embeddings",
       "24",
       "--valid-data",
       text_,
       "--batch-size",
       "8",
       "--inference",
       "--activations-checkpoint-method",
       "uniform",
       "--tensor-model-parallel-size",
       "1",
       "--checkpoint-activations",
       "--log-interval",
       "10",
       "--no-load-optim",
       "--no-load-rng"});
  EXPECT_TRUE(
      contains(run({"--task", "WIKITEXT103", "--num-layers", "3", "--valid-data", text_}, 2),
               "--num-layers 3, but the model"));
  EXPECT_TRUE(contains(run({"--task", "WIKITEXT103", "--valid-data", text_, "--lambada"}, 2),
                       "unknown option --lambada"));
}

TEST_F(EvaluateTest, LogitsToAFile) {
  const std::string out = folder_.path("logits.npy"), ids = folder_.file("ids", "[1,2,3]\n[4,5,6]");
  const auto result = json({"--task", "LOGITS", "--ids", ids, "--output", out});
  EXPECT_EQ(result["shape"], (std::vector<int>{2, 3, 61}));
  EXPECT_EQ(std::filesystem::file_size(out), 128u + 2 * 3 * 61 * 4);
  const std::string uneven = folder_.file("uneven", "[[1,2,3],[4,5]]");
  std::filesystem::remove(out);
  EXPECT_TRUE(contains(run({"--task", "LOGITS", "--ids", uneven, "--output", out}, 2), "array 1"));
  const std::string numbers = "1 1 1 1 1 1 1 1 1 1 1 1 1 ";
  EXPECT_TRUE(contains(
      run({"--task", "LOGITS", "--ids", folder_.file("long", numbers + numbers), "--output", out},
          2),
      "--ids: 26 tokens in an array, but the model has positions for 24"));
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(EvaluateTest, LogitsOfBertAndT5) {
  const std::string ids = folder_.file("ids.json", "[[1, 2, 3], [4, 5, 6]]");
  const std::string decoder_ids = folder_.file("decoder.json", "[[0, 7], [0, 8]]");
  const std::string out = folder_.path("out.npy");
  const auto evaluate = [&](const std::string& family, Arguments more, int code) {
    Arguments all = {"evaluate", "--load", folder_.path(family), "--device", "cpu", "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return expect_command(all, code);
  };
  Device device({.num_threads = 1});
  Stream stream(device);
  for (const std::string family : {"bert", "t5"}) {
    ModelOptions o = small_gpt();
    o.family = family;
    find_family(family).defaults(o);
    save_checkpoint(folder_.path(family), 1, {o, {}, DType::fp32},
                    random_weights(stream, o, DType::fp32));
  }
  const Arguments logits = {"--task", "LOGITS", "--ids", ids, "--output", out};
  EXPECT_TRUE(contains(evaluate("bert", logits, 0), R"("shape":[2,3,61])"));
  std::filesystem::remove(out);
  Arguments both = logits;
  both.insert(both.end(), {"--decoder-ids", decoder_ids});
  EXPECT_TRUE(contains(evaluate("t5", both, 0), R"("shape":[2,2,61])"));
  std::filesystem::remove(out);
  EXPECT_TRUE(contains(evaluate("t5", logits, 2), "give the decoder's input with --decoder-ids"));
  EXPECT_TRUE(contains(evaluate("bert", both, 2), "no encoder"));
  EXPECT_TRUE(contains(evaluate("bert", {"--task", "PERPLEXITY", "--valid-data", text_}, 2),
                       "needs a model that generates text"));
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(EvaluateTest, RefusesWhatMakesNoSense) {
  EXPECT_TRUE(contains(run({"--task", "PERPLEXITY"}, 2), "--valid-data is missing"));
  EXPECT_TRUE(contains(run({"--task", "LOGITS", "--ids", "x"}, 2), "--ids and --output"));
  EXPECT_TRUE(contains(run({"--task", "RACE", "--valid-data", text_}, 2), "--task"));
  run({"--valid-data", text_}, 2);
  run({"--task", "PERPLEXITY", "--valid-data", text_, "--strict-lambada"}, 2);
  run({"--task", "LAMBADA", "--valid-data", lines_, "--append-eod"}, 2);
  run({"--task", "PERPLEXITY", "--valid-data", folder_.path("absent")}, 2);
  run({"--task", "LAMBADA", "--valid-data", text_}, 2);
  std::ostringstream out, errors;
  EXPECT_EQ(run_bloomery({"evaluate", "--task", "PERPLEXITY", "--valid-data", text_, "--load",
                          folder_.path("absent")},
                         out, errors),
            2);
}

TEST_F(EvaluateTest, OtherDTypesGiveNearlyTheSame) {
  const double exact = json({"--task", "PERPLEXITY", "--valid-data", text_})["nll"];
  const double rounded = json({"--task", "PERPLEXITY", "--valid-data", text_, "--bf16"})["nll"];
  EXPECT_NE(exact, rounded);
  EXPECT_NEAR(rounded / exact, 1, 0.05);
}

}  // namespace
}  // namespace bloomery
