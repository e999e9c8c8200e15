// Files of options: --config, JSON and YAML, and what a run stores to be repeated.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "config/option_table.h"

namespace bloomery {
namespace {

enum class Precision { fp32, bf16 };

struct ConfigTest : testing::Test {
  int num_layers = 12;
  double lr = 1e-4;
  bool bias = true;
  std::string save;
  std::optional<int> channels;
  std::vector<int> sizes;
  std::vector<std::string> data_path;
  Precision precision = Precision::fp32;
  OptionTable table;
  TemporaryFolder folder;

  ConfigTest() {
    table.add("num-layers", num_layers, "Layers.", at_least(1));
    table.add("lr", lr, "Rate.").alias("learning-rate");
    table.add("bias", bias, "Biases.");
    table.add("save", save, "Where checkpoints go.");
    table.add("kv-channels", channels, "Size of a head.");
    table.add("sizes", sizes, "Some sizes.");
    table.add("data-path", data_path, "Corpora.");
    table
        .add("precision", precision, "Type.",
             {{"fp32", Precision::fp32}, {"bf16", Precision::bf16}})
        .shorthand("bf16", "bf16")
        .deepspeed("bf16.enabled", "bf16");
    table.refuse("experts", {"1"}, "there are none");
    table.take_config_files();
  }
  std::string file(const std::string& name, const std::string& text) const {
    return folder.file(name, text).string();
  }
  std::string error() {
    try {
      table.finish();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  std::string error(const std::string& yaml) {
    table.read_flags({"--config", file("bad.yaml", yaml)});
    return error();
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(ConfigTest, FlagsCountMoreThanFilesAndLaterFilesMoreThanEarlier) {
  const std::string first = file("a.json", R"({"num_layers": 3, "lr": 0.5, "bf16": true})");
  const std::string second = file("b.yaml", "lr: 0.25\nsave: out\n");
  table.read_flags({"--num-layers", "7", "--config", first, second});
  EXPECT_EQ(error(), "");
  EXPECT_EQ(num_layers, 7);
  EXPECT_EQ(lr, 0.25);
  EXPECT_EQ(save, "out");
  EXPECT_EQ(precision, Precision::bf16);
  EXPECT_EQ(table.given_by("num-layers"), "--num-layers");
  EXPECT_EQ(table.given_by("save"), "save in " + second);
  ASSERT_EQ(table.notes().size(), 1u);  // of the two files; that a flag counts more is no news
  EXPECT_TRUE(contains(table.notes()[0], "b.yaml = 0.25 counts")) << table.notes()[0];
}

TEST_F(ConfigTest, Yaml) {
  const std::string path = file("run.yaml",
                                "---\n"
                                "# a run\n"
                                "num-layers: 24   # deep\n"
                                "learning_rate: 3e-4\n"
                                "bias: false\n"
                                "save: 'it''s #1: \"here\"'\r\n"
                                "kv-channels: ~\n"
                                "sizes: [1, -2,3]\n"
                                "data-path:\n"
                                "  - \"a b\\n\"\n"
                                "  - C:\\x#y\n"
                                "\n"
                                "bf16: true\n"
                                "experts: 1\n");
  table.read_flags({"--config", path});
  EXPECT_EQ(error(), "");
  EXPECT_EQ(num_layers, 24);
  EXPECT_EQ(lr, 3e-4);
  EXPECT_FALSE(bias);
  EXPECT_EQ(save, "it's #1: \"here\"");
  EXPECT_EQ(sizes, (std::vector<int>{1, -2, 3}));
  EXPECT_EQ(data_path, (std::vector<std::string>{"a b\n", "C:\\x#y"}));
  EXPECT_EQ(precision, Precision::bf16);
}

TEST_F(ConfigTest, ProblemsNameTheFileAndThePlace) {
  table.read_flags({"--config", file("run.json", R"({"num-layer": 3, "lr": "x", "experts": 8})"),
                    (folder.path() / "absent").string()});
  const std::string text = error();
  EXPECT_TRUE(contains(text, "unknown option num-layer in ")) << text;
  EXPECT_TRUE(contains(text, "did you mean num-layers?")) << text;
  EXPECT_TRUE(contains(text, "run.json must be a number")) << text;
  EXPECT_TRUE(contains(text, " 8 is refused: there are none")) << text;
  EXPECT_TRUE(contains(text, "absent")) << text;
}

TEST_F(ConfigTest, YamlThatIsMoreThanOptions) {
  for (const auto& [yaml, part] : {std::pair{"model:\n  num-layers: 3\n", "line 2: expected"},
                                   {"lr: 1\nlr: 2\n", "line 2: the key \"lr\" appears twice"},
                                   {"save: |\n  text\n", "line 1: a value cannot start with '|'"},
                                   {"save: \"abc\n", "line 1: the text in double quotes"},
                                   {"save: 'abc' d\n", "line 1: the text in single quotes"},
                                   {"sizes: [1,\n", "line 1: a list in brackets"},
                                   {"just text\n", "line 1: expected"}}) {
    EXPECT_TRUE(contains(error(yaml), part)) << yaml << error(yaml);
  }
  EXPECT_TRUE(contains(error("num-layer: 3\n"), "did you mean num-layers?"));
  EXPECT_TRUE(contains(error("save: \xFF\n"), "UTF-8"));
}

TEST_F(ConfigTest, WhatWasGivenCanBeGivenAgain) {
  table.read_flags({"--config", file("run.yaml", "lr: 0.1\nkv-channels: 8\n"), "--no-bias",
                    "--kv-channels", "9", "--data-path", "a", "b"});
  table.read_deepspeed(R"({"bf16": {"enabled": true}})", "ds.json");
  ASSERT_EQ(error(), "");
  const std::string given = table.given_json();
  EXPECT_EQ(given, R"({
  "lr": 0.1,
  "bias": false,
  "kv-channels": 9,
  "data-path": [
    "a",
    "b"
  ]
}
)");
}

TEST_F(ConfigTest, OnlyTheLastWordOfARefusedOptionCounts) {
  table.read_flags({"--experts", "8", "--experts", "1"});
  EXPECT_EQ(error(), "");
}

TEST_F(ConfigTest, TheListForPrograms) {
  const std::string list = table.list();
  EXPECT_TRUE(contains(list, "--num-layers\tINTEGER\tLayers. (at least 1; default 12)\n")) << list;
  EXPECT_TRUE(contains(list, "\n--learning-rate\tNUMBER\tRate.")) << list;
  EXPECT_TRUE(contains(list, "\n--precision\tfp32|bf16\tType.")) << list;
  EXPECT_TRUE(contains(list, "\n--bf16\t\tShort for --precision bf16.\t--precision\n")) << list;
  EXPECT_FALSE(contains(list, "experts")) << list;
  EXPECT_TRUE(wants_help({kHelpAsList}));
}

}  // namespace
}  // namespace bloomery
