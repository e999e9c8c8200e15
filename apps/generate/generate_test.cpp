#include "apps/generate/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "apps/bloomery.h"
#include "apps/common/typed_lines_case.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "checkpoint/hf/hf_model.h"
#include "checkpoint/model_source_case.h"

namespace bloomery {
namespace {

using Json = nlohmann::json;

// A tokenizer of bytes: the alphabet of GPT-2 without merges, and the end of text.
std::string byte_vocabulary() {
  Json vocabulary;
  std::set<int> printable;
  for (int byte = 0; byte < 256; ++byte) {
    if ((byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174) {
      printable.insert(byte);
    }
  }
  for (int byte = 0, other = 256; byte < 256; ++byte) {
    const int code = printable.contains(byte) ? byte : other++;
    std::string letter;
    if (code < 128) {
      letter = static_cast<char>(code);
    } else {
      letter = {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
    }
    vocabulary[letter] = byte;
  }
  vocabulary["<|endoftext|>"] = 256;
  return vocabulary.dump();
}

class GenerateCommandTest : public ::testing::Test {
 protected:
  GenerateCommandTest() {
    folder_.file("vocab.json", byte_vocabulary());
    folder_.file("merges.txt", "#version: 0.2\n");
    options_.vocabulary.size = 257;
    options_.positions.max_length = 48;
    Device device({.num_threads = 1});
    Stream stream(device);
    HfExportOptions extra;
    extra.tokenizer = find_hf_tokenizer({.type = "GPT2BPETokenizer",
                                         .vocab_file = path("vocab.json"),
                                         .merge_file = path("merges.txt")});
    write_hf(stream, path("model"), options_, random_weights(stream, options_, DType::fp32), extra);
  }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  // Runs `bloomery generate --load MODEL ARGUMENTS`, expects the exit code and returns the output,
  // or the errors when there are some.
  std::string run(Arguments arguments, int code = 0) {
    arguments.insert(arguments.begin(), {"generate", "--load", path("model"), "--device", "cpu",
                                         "--num-threads", "2"});
    std::ostringstream out, errors;
    EXPECT_EQ(run_bloomery(arguments, out, errors), code) << out.str() << errors.str();
    return code == 0 ? out.str() : errors.str();
  }
  std::vector<Json> rows(Arguments arguments) {
    arguments.emplace_back("--json");
    return parse(run(std::move(arguments)));
  }
  static std::vector<Json> parse(const std::string& text) {
    std::istringstream lines(text);
    std::vector<Json> found;
    for (std::string line; std::getline(lines, line);) {
      found.push_back(Json::parse(line));
    }
    return found;
  }

  TemporaryFolder folder_;
  ModelOptions options_ = small_gpt();
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(GenerateCommandTest, RowsHoldNewTokensOnly) {
  const auto found = rows({"--prompt", "abc", "d", "--out-seq-length", "7", "--greedy"});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0]["prompt"], "abc");
  EXPECT_EQ(found[1]["prompt"], "d");
  EXPECT_EQ(found[1]["prompt_number"], 1);
  for (const Json& row : found) {
    EXPECT_EQ(row["ids"].size(), row["logprobs"].size());
    EXPECT_EQ(row["length"], row["ids"].size());
    EXPECT_TRUE(row["ids"].size() == 7 || row["ids"].back() == 256);
    for (const double x : row["logprobs"]) {
      EXPECT_LT(x, 0);
      EXPECT_TRUE(std::isfinite(x));
    }
  }
}

TEST_F(GenerateCommandTest, NeitherBatchesNorTheCacheShow) {
  folder_.file("prompts", "one\nanother prompt\n\nx\r\nlast");
  const Arguments common = {"--prompt-file", path("prompts"), "--num-samples", "3", "--top_k", "30",
                            "--top_p",       "0.95",          "--seed",        "7"};
  const auto with = [&](const Arguments& more) {
    Arguments all = common;
    all.insert(all.end(), more.begin(), more.end());
    return rows(all);
  };
  const auto expected = with({});
  ASSERT_EQ(expected.size(), 15u);
  EXPECT_EQ(expected[6]["prompt"], "");  // an empty line starts from nothing
  EXPECT_EQ(expected[9]["prompt"], "x");
  EXPECT_EQ(expected[11]["sample"], 2);
  EXPECT_NE(expected[0]["ids"], expected[1]["ids"]);
  for (const Arguments& other :
       {Arguments{"--batch-size", "1"}, Arguments{"--batch-size", "4"}, Arguments{"--recompute"}}) {
    const auto found = with(other);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i]["ids"], expected[i]["ids"]) << other[0] << i;
      EXPECT_EQ(found[i]["text"], expected[i]["text"]) << other[0] << i;
    }
  }
  Arguments other_seed = common;
  other_seed.back() = "8";
  EXPECT_NE(rows(other_seed)[0]["ids"], expected[0]["ids"]);
}

TEST_F(GenerateCommandTest, MegatronsScriptForTextFromNothing) {
  std::ostringstream out, errors;
  const Arguments script = {"tools/generate_samples_gpt.py",
                            "--num-layers",
                            "2",
                            "--hidden-size",
                            "16",
                            "--num-attention-heads",
                            "2",
                            "--seq-length",
                            "48",
                            "--max-position-embeddings",
                            "48",
                            "--micro-batch-size",
                            "4",
                            "--lr",
                            "1.5e-4",
                            "--checkpoint-activations",
                            "--load",
                            path("model"),
                            "--vocab-file",
                            path("vocab.json"),
                            "--merge-file",
                            path("merges.txt"),
                            "--out-seq-length",
                            "1024",
                            "--temperature",
                            "1.0",
                            "--genfile",
                            path("samples.json"),
                            "--num-samples",
                            "2",
                            "--top_p",
                            "0.9",
                            "--recompute"};
  EXPECT_EQ(run_bloomery(script, out, errors), 0) << errors.str();
  EXPECT_EQ(out.str(), "");
  const auto found = parse(read_file(path("samples.json")));
  ASSERT_EQ(found.size(), 2u);
  for (const Json& row : found) {
    EXPECT_EQ(row["prompt"], "");
    EXPECT_TRUE(row["text"].is_string());
    // The model ends at its 48 positions.
    EXPECT_TRUE(row["finish"] == "eod" || (row["finish"] == "positions" && row["length"] == 48));
    EXPECT_EQ(row["finished"], row["finish"] == "eod");
  }
  Arguments other = script;
  other[4] = "32";
  std::ostringstream refusal;
  EXPECT_EQ(run_bloomery(other, out, refusal), 2);
  EXPECT_TRUE(contains(refusal.str(), "--hidden-size 32")) << refusal.str();
}

TEST_F(GenerateCommandTest, TextForPeople) {
  const Arguments common = {"--out-seq-length", "5", "--greedy"};
  const auto with = [&](Arguments arguments) {
    arguments.insert(arguments.end(), common.begin(), common.end());
    return arguments;
  };
  const std::string text = rows(with({"--prompt", "abc"}))[0]["text"];
  EXPECT_EQ(run(with({"--prompt", "abc"})), "abc" + text + "\n");
  const std::string two = run(with({"--prompt", "abc", "--num-samples", "2"}));
  EXPECT_EQ(two, "--- prompt 0, sample 0 ---\nabc" + text + "\n--- prompt 0, sample 1 ---\nabc" +
                     text + "\n");
  EXPECT_EQ(run(with({"--prompt", "abc", "--sample-output-file", path("blocks")})), "");
  EXPECT_EQ(read_file(path("blocks")), "Context: abc\n\nMegatron-LM: " + text + "\n\n");
}

TEST_F(GenerateCommandTest, StopStrings) {
  const Arguments common = {"--prompt", "hello", "--seed", "3", "--out-seq-length", "20"};
  const auto with = [&](Arguments arguments) {
    arguments.insert(arguments.end(), common.begin(), common.end());
    return rows(arguments)[0];
  };
  const std::string text = with({})["text"];
  ASSERT_GT(text.size(), 6u);
  // A whole character in the middle of the text.
  std::size_t at = 3;
  while ((text[at] & 0xC0) == 0x80) {
    ++at;
  }
  const std::size_t length = (text[at] & 0x80) == 0 ? 1 : (text[at] & 0x20) == 0 ? 2 : 3;
  const std::string stop = text.substr(at, length);
  const Json row = with({"--stop", "no such text", stop});
  EXPECT_EQ(row["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(row["finish"], "stop");
  EXPECT_TRUE(row["finished"]);
}

TEST_F(GenerateCommandTest, Beams) {
  const auto found = rows({"--prompt", "ab", "--num-beams", "4", "--num-samples", "3",
                           "--out-seq-length", "6", "--repetition-penalty", "1.2"});
  ASSERT_EQ(found.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found[i]["sample"], i);
    EXPECT_TRUE(i == 0 || found[i]["score"] <= found[i - 1]["score"]);
  }
  EXPECT_TRUE(contains(run({"--prompt", "a", "--num-beams", "2", "--top-k", "3"}, 2), "--top-k"));
  run({"--prompt", "a", "--num-beams", "2", "--num-samples", "3"}, 2);
}

TEST_F(GenerateCommandTest, DialogueWithAProgramHasNoPrompts) {
  const Arguments options = {"--greedy", "--out-seq-length", "4"};
  const auto text = [&](const std::string& prompt) -> std::string {
    Arguments arguments = options;
    arguments.insert(arguments.end(), {"--prompt", prompt});
    return rows(arguments)[0]["text"];
  };
  {
    const TypedLines typed(std::cin, "abc\n\nde\nstop\nnot read\n");
    EXPECT_EQ(run(options), "abc" + text("abc") + "\nde" + text("de") + "\n");
  }
  const TypedLines nothing(std::cin, "");
  EXPECT_EQ(run(options), "");
}

// As examples_deepspeed/generate_text.sh asks for it: the file then has the texts too.
TEST_F(GenerateCommandTest, NoSamplesAreADialogueAlsoWithAFile) {
  const Arguments options = {"--greedy", "--out-seq-length", "4",          "--num-samples",
                             "0",        "--genfile",        path("rows"), "--ds-inference"};
  const TypedLines typed(std::cin, "abc\nde\nstop\n");
  const std::string shown = run(options);
  const std::vector<Json> written = parse(read_file(path("rows")));
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(shown, "abc" + written[0]["text"].get<std::string>() + "\nde" +
                       written[1]["text"].get<std::string>() + "\n");
}

TEST_F(GenerateCommandTest, NoSamplesOfAFileAreOneForEachPrompt) {
  folder_.file("prompts", "one\nanother prompt\n");
  for (const char* beams : {"1", "3"}) {
    const auto found =
        rows({"--sample-input-file", path("prompts"), "--num-samples", "0", "--num-beams", beams});
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[1]["prompt"], "another prompt");
  }
}

TEST_F(GenerateCommandTest, NativeCheckpoints) {
  Device device({.num_threads = 1});
  Stream stream(device);
  const ModelRecord record{options_,
                           TokenizerOptions{.type = "GPT2BPETokenizer",
                                            .vocab_file = path("vocab.json"),
                                            .merge_file = path("merges.txt")},
                           DType::fp32};
  save_checkpoint(path("save"), 5, record, random_weights(stream, options_, DType::fp32));
  const Arguments common = {"--prompt", "same", "--seed", "5", "--json"};
  Arguments native = {"generate", "--load", path("save"), "--device", "cpu"};
  native.insert(native.end(), common.begin(), common.end());
  std::ostringstream out, errors;
  EXPECT_EQ(run_bloomery(native, out, errors), 0) << errors.str();
  EXPECT_EQ(out.str(), run(common));
}

TEST_F(GenerateCommandTest, PenaltiesOfWhatWasDrawn) {
  const auto ids = [&](const Arguments& more) {
    Arguments all = {"--prompt", "abc", "--greedy", "--out-seq-length", "40"};
    all.insert(all.end(), more.begin(), more.end());
    return rows(all)[0]["ids"].get<std::vector<int>>();
  };
  const auto most_often = [](std::vector<int> all) {
    std::sort(all.begin(), all.end());
    std::size_t most = 0;
    for (const int id : all) {
      most = std::max(most, static_cast<std::size_t>(std::count(all.begin(), all.end(), id)));
    }
    return most;
  };
  const std::vector<int> plain = ids({});
  ASSERT_GT(most_often(plain), 3u);  // the model repeats itself
  EXPECT_LT(most_often(ids({"--frequency-penalty", "2"})), most_often(plain));
  EXPECT_NE(ids({"--presence-penalty", "2"}), plain);
  EXPECT_TRUE(contains(run({"--prompt", "a", "--presence-penalty", "3"}, 2), "--presence-penalty"));
  EXPECT_TRUE(contains(run({"--prompt", "a", "--num-beams", "2", "--frequency-penalty", "1"}, 2),
                       "beam search"));
}

TEST_F(GenerateCommandTest, TensorRanksDoNotShow) {
  ModelOptions options = options_;
  options.hidden_size = 32;
  options.attention.num_heads = 8;
  options.attention.num_groups = 4;
  options.norm.kind = NormKind::rms;
  options.mlp.kind = MlpKind::swiglu;
  options.bias = false;
  options.vocabulary.untied = true;
  options.positions.rotary = true;
  Device device({.num_threads = 1});
  Stream stream(device);
  const ModelRecord record{options,
                           TokenizerOptions{.type = "GPT2BPETokenizer",
                                            .vocab_file = path("vocab.json"),
                                            .merge_file = path("merges.txt")},
                           DType::fp32};
  save_checkpoint(path("llama"), 5, record, random_weights(stream, options, DType::fp32));
  const auto rows_of = [&](const Arguments& flags, const Arguments& ranks) {
    Arguments all = {"--load", path("llama"), "--prompt", "abc", "another one", "--json"};
    all.insert(all.end(), flags.begin(), flags.end());
    all.insert(all.end(), ranks.begin(), ranks.end());
    return parse(run(all));
  };
  for (const Arguments& flags :
       {Arguments{"--greedy"}, Arguments{"--num-samples", "3", "--top-k", "40", "--seed", "4"},
        Arguments{"--num-beams", "3", "--out-seq-length", "8"}, Arguments{"--quantize", "int8"},
        Arguments{"--recompute", "--out-seq-length", "6"}}) {
    const auto expected = rows_of(flags, {});
    for (const char* ranks : {"2", "4"}) {
      const auto found = rows_of(flags, {"--tensor-model-parallel-size", ranks});
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i]["ids"], expected[i]["ids"]) << flags[0] << " " << ranks << " " << i;
        EXPECT_EQ(found[i]["text"], expected[i]["text"]) << flags[0] << " " << ranks << " " << i;
      }
    }
  }
}

TEST_F(GenerateCommandTest, WhatIsWrongWithRanksIsSaidOnce) {
  const auto refusal = [&](const Arguments& flags) {
    Arguments all = {"--prompt", "abc"};
    all.insert(all.end(), flags.begin(), flags.end());
    return run(all, 2);
  };
  const std::string heads = refusal({"--tensor-model-parallel-size", "4"});
  EXPECT_TRUE(contains(heads, "2 key/value heads cannot be divided among 4")) << heads;
  EXPECT_EQ(heads.find("cannot be built"), heads.rfind("cannot be built")) << heads;
  EXPECT_TRUE(
      contains(refusal({"--ranks-as-threads", "2"}), "give --tensor-model-parallel-size 2"));
  const std::string prompt =
      refusal({"--tensor-model-parallel-size", "2", "--prompt", std::string(49, 'x')});
  EXPECT_TRUE(contains(prompt, "positions for 48")) << prompt;
}

TEST_F(GenerateCommandTest, WhatIsWrongIsSaid) {
  EXPECT_TRUE(contains(run({"--prompt", std::string(49, 'x')}, 2), "positions for 48"));
  EXPECT_TRUE(contains(run({"--prompt", "\xFF"}, 2), "UTF-8"));
  EXPECT_TRUE(contains(run({"--prompt", "a", "--prompt-file", "b"}, 2), "together"));
  EXPECT_TRUE(contains(run({"--prompt-file", path("absent")}, 2), "absent"));
  EXPECT_TRUE(contains(run({"--prompt", "a", "--genfile", path("no/folder")}, 2), "no/folder"));
  EXPECT_TRUE(contains(run({"--prompt", "a", "--stop", ""}, 2), "--stop"));
  EXPECT_TRUE(contains(run({"--genfile", path("rows")}, 2), "--num-samples"));
  EXPECT_TRUE(contains(run({"--prompt", "a", "--top-q", "1"}, 2), "--top-q"));
  EXPECT_TRUE(contains(
      run({"--prompt", "60 70", "--tokenizer-type", "NullTokenizer", "--vocab-size", "9000"}),
      "60 70"));
  EXPECT_TRUE(contains(
      run({"--prompt", "6000", "--tokenizer-type", "NullTokenizer", "--vocab-size", "9000"}, 2),
      "use the model's own tokenizer"));
  folder_.file("empty", "");
  EXPECT_TRUE(contains(run({"--prompt-file", path("empty")}, 2), "no prompt"));
  run({"--prompt", "a", "--temperature", "-1"}, 2);
}

}  // namespace
}  // namespace bloomery
