#include "config/option_table.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/nearest.h"

namespace bloomery {
namespace {

using Arguments = std::vector<std::string>;

enum class Precision { fp32, bf16 };

struct Sample {
  int num_layers = 12;
  std::int64_t train_samples = 0;
  float lr = 3e-4f;
  double epsilon = 1e-8;
  bool bias = true;
  bool no_load = false;
  std::string activation = "gelu";
  std::string save;
  Precision precision = Precision::fp32;
  std::optional<int> kv_channels;
  std::vector<int> sizes = {1, 2};
  std::vector<std::string> data_path;
  float clip_grad = 1;
};

void describe(OptionTable& t, Sample& o) {
  t.section("model");
  t.add("num-layers", o.num_layers, "Transformer layers.", at_least(1));
  t.add("kv-channels", o.kv_channels, "Width of a head.", at_least(1));
  t.add("add-bias-linear", o.bias, "Biases in linear layers.")
      .shorthand("disable-bias-linear", "false")
      .off("Leave out the biases of linear layers.");
  t.add_choice("activation", o.activation, "Activation.", {"gelu", "relu"});
  t.section("training");
  t.add("lr", o.lr, "Peak learning rate.", from_to_below(0, 1)).alias("learning-rate");
  t.add("adam-eps", o.epsilon, "Added to the denominator.", above(0));
  t.add("train-samples", o.train_samples, "Samples to train on.", at_least(0));
  t.add("precision", o.precision, "Type of the parameters.",
        {{"fp32", Precision::fp32}, {"bf16", Precision::bf16}})
      .shorthand("bf16", "bf16")
      .deepspeed("bf16.enabled", "bf16");
  t.add("clip-grad", o.clip_grad, "Largest gradient norm.", at_least(0))
      .deepspeed("gradient_clipping")
      .deepspeed_wins();
  t.section("files");
  t.add("save", o.save, "Where checkpoints go.");
  t.add("no-load-optim", o.no_load, "Start with fresh moments.");
  t.add("sizes", o.sizes, "Some sizes.", at_most(100));
  t.add("data-path", o.data_path, "Corpora.");
  t.ignore("local-rank", "ranks come from the launcher");
  t.ignore_deepspeed("optimizer", "the optimizer comes from the flags");
}

struct Fixture {
  Sample options;
  OptionTable table;
  Fixture() { describe(table, options); }
  void flags(const Arguments& arguments) {
    table.read_flags(arguments);
    table.finish();
  }
  std::string error() {
    try {
      table.finish();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  std::string error(const Arguments& arguments) {
    table.read_flags(arguments);
    return error();
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(OptionFlags, EveryType) {
  Fixture f;
  f.flags({"--num_layers",
           "24",
           "--train-samples=5e9",
           "--lr",
           "1e-3",
           "--adam_eps",
           "1e-6",
           "--no-add-bias-linear",
           "--activation",
           "relu",
           "--precision",
           "bf16",
           "--kv-channels",
           "64",
           "--sizes",
           "3,4",
           "5",
           "--data-path",
           "a",
           "b,c",
           "--save",
           "out dir",
           "--no-load-optim"});
  EXPECT_EQ(f.options.num_layers, 24);
  EXPECT_EQ(f.options.train_samples, 5000000000);
  EXPECT_EQ(f.options.lr, 1e-3f);
  EXPECT_EQ(f.options.epsilon, 1e-6);
  EXPECT_FALSE(f.options.bias);
  EXPECT_TRUE(f.options.no_load);
  EXPECT_EQ(f.options.activation, "relu");
  EXPECT_EQ(f.options.precision, Precision::bf16);
  EXPECT_EQ(f.options.kv_channels, 64);
  EXPECT_EQ(f.options.sizes, (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(f.options.data_path, (std::vector<std::string>{"a", "b,c"}));
  EXPECT_EQ(f.options.save, "out dir");
}

TEST(OptionFlags, Spellings) {
  Fixture f;
  f.flags({"--disable-bias-linear", "--bf16", "--learning_rate", "0.5"});
  EXPECT_FALSE(f.options.bias);
  EXPECT_EQ(f.options.precision, Precision::bf16);
  EXPECT_EQ(f.options.lr, 0.5f);
  EXPECT_EQ(f.table.given_by("lr"), "--learning-rate");
  EXPECT_TRUE(f.table.given("precision"));
  EXPECT_FALSE(f.table.given("num-layers"));

  Fixture g;
  g.flags({"--add-bias-linear=false"});
  EXPECT_FALSE(g.options.bias);

  Fixture h;
  h.options.save = "somewhere";
  h.flags({"--save=", "--lr", "0.5"});
  EXPECT_EQ(h.options.save, "");
  EXPECT_EQ(h.options.lr, 0.5f);
}

TEST(OptionFlags, NegativeNumbersAreValues) {
  struct {
    double shift = 0;
    std::vector<int> numbers;
  } o;
  OptionTable table;
  table.add("shift", o.shift, "");
  table.add("numbers", o.numbers, "");
  table.read_flags({"--shift", "-0.5", "--numbers", "-1", "-2"});
  table.finish();
  EXPECT_EQ(o.shift, -0.5);
  EXPECT_EQ(o.numbers, (std::vector<int>{-1, -2}));
}

TEST(OptionFlags, AllProblemsAtOnce) {
  Fixture f;
  const std::string error =
      f.error({"--num-layers", "0", "--lr", "fast", "--num-layer", "3", "--activation", "tanh",
               "--precision", "fp8", "--save", "--sizes", "1", "500", "-x"});
  EXPECT_TRUE(contains(error, "unexpected argument '-x'")) << error;
  EXPECT_TRUE(contains(error, "problems with the options:")) << error;
  EXPECT_TRUE(contains(error, "--num-layers: 0 is out of range: it must be at least 1")) << error;
  EXPECT_TRUE(contains(error, "--lr: 'fast' is not a finite number")) << error;
  EXPECT_TRUE(contains(error, "unknown option --num-layer; did you mean --num-layers?")) << error;
  EXPECT_TRUE(contains(error, "--activation: 'tanh' is not one of gelu, relu")) << error;
  EXPECT_TRUE(contains(error, "--precision: 'fp8' is not one of fp32, bf16")) << error;
  EXPECT_TRUE(contains(error, "--save needs a value")) << error;
  EXPECT_TRUE(contains(error, "--sizes: 500 is out of range: it must be at most 100")) << error;
  EXPECT_EQ(f.options.num_layers, 12);  // a bad value never reaches the field
}

TEST(OptionFlags, SingleProblemIsOneLine) {
  Fixture f;
  EXPECT_EQ(f.error({"--lr", "1"}), "--lr: 1 is out of range: it must be at least 0 and below 1");
}

TEST(OptionFlags, BadNumbers) {
  for (const char* bad : {"", "1.5", "1x", "99999999999", "nan", "0x10", " 3"}) {
    Fixture f;
    EXPECT_TRUE(contains(f.error({std::string("--num-layers=") + bad}), "--num-layers")) << bad;
  }
  for (const char* bad : {"nan", "inf", "1e99", "1,5"}) {
    Fixture f;
    EXPECT_TRUE(contains(f.error({"--clip-grad", bad}), "--clip-grad")) << bad;
  }
}

TEST(OptionFlags, TheLastCountsWithANote) {
  Fixture f;
  f.flags({"--lr", "0.1", "--bf16", "--learning-rate", "0.2", "--sizes", "1", "2", "--sizes", "3",
           "--precision", "fp32", "--add-bias-linear", "--disable-bias-linear", "--lr", "0.3"});
  EXPECT_EQ(f.options.lr, 0.3f);
  EXPECT_EQ(f.options.sizes, std::vector<int>{3});
  EXPECT_EQ(f.options.precision, Precision::fp32);
  EXPECT_FALSE(f.options.bias);
  const std::vector<std::string> notes = {
      "--learning-rate = 0.2 counts, because it comes after --lr = 0.1",
      "--sizes = 3 counts, because it comes after --sizes = 1 2",
      "--precision = fp32 counts, because it comes after --bf16 = bf16",
      "--disable-bias-linear = false counts, because it comes after --add-bias-linear = true",
      "--lr = 0.3 counts, because it comes after --learning-rate = 0.2"};
  EXPECT_EQ(f.table.notes(), notes);

  Fixture same;
  same.flags({"--lr", "0.1", "--learning-rate", "1e-1"});
  EXPECT_TRUE(same.table.notes().empty());
  Fixture value;
  EXPECT_TRUE(contains(value.error({"--bf16=fp8"}), "takes no value"));
  Fixture bad;  // as in argparse, every value must be one
  EXPECT_TRUE(contains(bad.error({"--lr", "fast", "--lr", "0.1"}), "'fast'"));
}

TEST(OptionFlags, WhatCanBeAValue) {
  Fixture f;
  f.flags({"--save", "-", "--sizes", "-3", "--lr", ".5", "--data-path", "- a", "b"});
  EXPECT_EQ(f.options.save, "-");
  EXPECT_EQ(f.options.data_path, (std::vector<std::string>{"- a", "b"}));
  Fixture g;
  EXPECT_EQ(g.error({"--save", "-x"}),
            "2 problems with the options:\n  --save needs a value\n  unexpected argument '-x'");
  Fixture h;
  h.flags({"--save=-x"});
  EXPECT_EQ(h.options.save, "-x");
}

TEST(OptionFlags, IgnoredOptionsSaySo) {
  Fixture f;
  f.flags({"--local_rank=3", "--lr", "0.1"});
  ASSERT_EQ(f.table.notes().size(), 1u);
  EXPECT_EQ(f.table.notes()[0], "--local-rank is ignored: ranks come from the launcher");
}

TEST(OptionFlags, RequiredAndFurtherProblems) {
  struct {
    int world = 0;
    std::string task, data;
  } o;
  OptionTable table;
  table.add("world-size", o.world, "Number of ranks.", at_least(1)).required();
  table.add("data", o.data, "Files to read. Patterns work too.").required();
  table.add_choice("task", o.task, "What to do. There are two.", {"LAMBADA", "LOGITS"}).required();
  table.read_flags({});
  try {
    table.finish({"heads do not divide"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "4 problems with the options:\n  --world-size is required: Number of ranks.\n"
                 "  --data is required: Files to read.\n"
                 "  --task is required: one of LAMBADA, LOGITS\n"
                 "  heads do not divide");
  }
}

TEST(OptionFlags, ARefusedOptionIsNotAlsoMissing) {
  int world = 0;
  OptionTable table;
  table.add("world-size", world, "Number of ranks.", between(1, 1000000)).required();
  table.read_flags({"--world-size", "0"});
  try {
    table.finish();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "--world-size: 0 is out of range: it must be at least 1 and at most 1000000");
  }
}

TEST(OptionFlags, HelpIsRecognised) {
  EXPECT_TRUE(wants_help({"a", "--help"}));
  EXPECT_TRUE(wants_help({"-h"}));
  EXPECT_FALSE(wants_help({"--", "--help"}));
}

TEST(OptionTable, DuplicateDeclarationsAreRefused) {
  int a = 0, b = 0;
  OptionTable table;
  table.add("a", a, "");
  EXPECT_THROW(table.add("a", b, ""), Error);
  table.add("b", b, "").alias("a");
  EXPECT_THROW(table.read_flags({}), Error);
}

TEST(OptionJson, RoundTripKeepsEveryBit) {
  Fixture f;
  f.flags({"--lr", "0.1", "--adam-eps", "1.2345678901234567e-8", "--kv-channels", "3",
           "--train-samples", "9007199254740993", "--sizes", "-4,5", "--data-path", "x \"y\"",
           "--bf16", "--disable-bias-linear"});
  Fixture g;
  g.table.read_json(f.table.json(), "copy.json");
  g.table.finish();
  EXPECT_EQ(g.options.lr, 0.1f);
  EXPECT_EQ(g.options.epsilon, f.options.epsilon);
  EXPECT_EQ(g.options.train_samples, 9007199254740993);
  EXPECT_EQ(g.options.kv_channels, 3);
  EXPECT_EQ(g.options.sizes, f.options.sizes);
  EXPECT_EQ(g.options.data_path, f.options.data_path);
  EXPECT_EQ(g.options.precision, Precision::bf16);
  EXPECT_FALSE(g.options.bias);
  EXPECT_EQ(g.table.json(), f.table.json());
  EXPECT_TRUE(differences(f.table, g.table).empty());

  Fixture defaults, copy;
  copy.table.read_json(defaults.table.json(), "copy.json");
  copy.table.finish();
  EXPECT_EQ(copy.table.json(), defaults.table.json());
  EXPECT_FALSE(copy.options.kv_channels.has_value());
}

TEST(OptionJson, AStoredValueAgainstAFlag) {
  Fixture f;
  f.table.read_flags({"--lr", "0.1", "--num-layers", "3"});
  f.table.read_json(R"({"learning_rate": 0.2, "num-layers": 3})", "run.json");
  EXPECT_EQ(f.error(),
            "--lr = 0.1 and learning-rate in run.json = 0.2 contradict each other: keep one of "
            "them");
  EXPECT_EQ(f.options.lr, 0.1f);
}

TEST(OptionJson, Problems) {
  Fixture f;
  f.table.read_json(R"({"lr": "0.1", "num_layers": 2.5, "bf16": 1, "save": null, "sizes": ["a"],
                        "clip_gard": 2, "add-bias-linear": "yes"})",
                    "run.json");
  const std::string error = f.error();
  EXPECT_TRUE(contains(error, "7 problems")) << error;
  EXPECT_TRUE(contains(error, "lr in run.json must be a number, not \"0.1\"")) << error;
  EXPECT_TRUE(contains(error, "num-layers in run.json: '2.5' is not an integer")) << error;
  EXPECT_TRUE(contains(error, "bf16 in run.json must be true or false, not 1")) << error;
  EXPECT_TRUE(contains(error, "unknown option clip_gard in run.json; did you mean clip-grad?"))
      << error;
  for (const char* text :
       {"", "{", "[1]", "{\"lr\": 0.1, \"lr\": 0.1}", "{\"lr\": 1e999}", "nul"}) {
    Fixture g;
    g.table.read_json(text, "bad.json");
    EXPECT_TRUE(contains(g.error(), "bad.json")) << text;
  }
}

TEST(OptionJson, DeepSpeedPaths) {
  Fixture f;
  f.table.read_flags({"--clip-grad", "2"});
  f.table.read_deepspeed(R"({"bf16": {"enabled": true}, "gradient_clipping": 0.5,
                             "optimizer": {"type": "Adam"}})",
                         "ds.json");
  f.table.finish();
  EXPECT_EQ(f.options.precision, Precision::bf16);
  EXPECT_EQ(f.options.clip_grad, 0.5f);  // the file overrules, with a note
  ASSERT_EQ(f.table.notes().size(), 2u);
  EXPECT_EQ(f.table.notes()[0], "gradient_clipping in ds.json = 0.5 overrules --clip-grad = 2");
  EXPECT_EQ(f.table.notes()[1],
            "optimizer in ds.json is ignored: the optimizer comes from the flags");

  Fixture later;  // in the other order the file still wins
  later.table.read_deepspeed(R"({"gradient_clipping": 0.5})", "ds.json");
  later.flags({"--clip-grad", "2"});
  EXPECT_EQ(later.options.clip_grad, 0.5f);
  EXPECT_EQ(later.table.notes().size(), 1u);

  Fixture g;
  g.table.read_flags({"--precision", "fp32"});
  g.table.read_deepspeed(R"({"bf16": {"enabled": true}, "gradient_cliping": 1})", "ds.json");
  const std::string error = g.error();
  EXPECT_TRUE(contains(error, "--precision = fp32 and bf16.enabled in ds.json = bf16 contradict"))
      << error;
  EXPECT_TRUE(contains(error,
                       "unknown entry gradient_cliping in ds.json; did you mean "
                       "gradient_clipping?"))
      << error;

  Fixture automatic;
  automatic.table.read_deepspeed(R"({"gradient_clipping": "auto"})", "ds.json");
  automatic.table.finish();
  EXPECT_FALSE(automatic.table.given("clip-grad"));
}

TEST(OptionTable, Differences) {
  Fixture a, b;
  b.flags({"--lr", "0.5", "--kv-channels", "8"});
  int extra = 1;
  b.table.add("extra", extra, "");
  const std::vector<OptionDifference> found = differences(a.table, b.table);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "kv-channels");
  EXPECT_EQ(found[0].before, "none");
  EXPECT_EQ(found[0].after, "8");
  EXPECT_EQ(found[1].name, "lr");
  EXPECT_EQ(found[2].before, "(no such option)");
}

TEST(OptionTable, HelpAndValues) {
  Fixture f;
  const std::string help = f.table.help();
  EXPECT_TRUE(contains(help, "model:\n  --num-layers INTEGER")) << help;
  EXPECT_TRUE(contains(help, "\ntraining:\n")) << help;
  EXPECT_TRUE(contains(help, "\n  --disable-bias-linear     Leave out the biases")) << help;
  EXPECT_TRUE(contains(help, "; --bf16 for bf16)")) << help;
  EXPECT_FALSE(contains(help, "local-rank")) << help;
  std::size_t begin = 0;
  for (std::size_t end; (end = help.find('\n', begin)) != help.npos; begin = end + 1) {
    EXPECT_LE(end - begin, 80u) << help.substr(begin, end - begin);
  }
  f.flags({"--lr", "0.25"});
  const std::string text = f.table.text();
  EXPECT_TRUE(contains(text, "  lr ................................... 0.25  (--lr)\n")) << text;
  EXPECT_TRUE(contains(text, "  num-layers ........................... 12\n")) << text;
}

TEST(OptionTable, HelpOfANarrowTerminalStandsBelowTheFlags) {
  Fixture f;
  const std::string help = f.table.help(40);
  EXPECT_TRUE(contains(help, "  --lr NUMBER\n      Peak learning rate. (at least 0\n")) << help;
}

TEST(OptionTable, RequiredOptionsComeFirst) {
  std::string save, load;
  OptionTable table;
  table.section("files");
  table.add("load", load, "A checkpoint.");
  table.add("save", save, "A folder.").required();
  EXPECT_EQ(table.help(),
            "required:\n  --save TEXT               A folder. (required)\n\n"
            "files:\n  --load TEXT               A checkpoint. (default none)\n");
}

TEST(OptionTable, SpellingsAreDescribedAsTheyAreTyped) {
  Fixture f;
  const OptionRow &bias = f.table.row("add-bias-linear"), &type = f.table.row("precision");
  EXPECT_EQ(bias.typed().text, "disable-bias-linear");
  EXPECT_EQ(bias.help_of(bias.flags[0]), "Biases in linear layers.");
  EXPECT_EQ(bias.help_of(bias.flags[1]), "Leave out the biases of linear layers.");
  EXPECT_EQ(type.help_of(type.flags[1]), "Short for --precision bf16.");
  EXPECT_EQ(f.table.row("no-load-optim").typed().text, "no-load-optim");
}

TEST(OptionTable, GoldenNames) {
  Fixture f;
  EXPECT_EQ(f.table.names(),
            (std::vector<std::string>{"num-layers", "kv-channels", "add-bias-linear", "activation",
                                      "lr", "adam-eps", "train-samples", "precision", "clip-grad",
                                      "save", "no-load-optim", "sizes", "data-path"}));
}

TEST(Nearest, Distances) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("ab", "ba"), 1);
  EXPECT_EQ(nearest("num-layer", {"num-heads", "num-layers"}), "num-layers");
  EXPECT_EQ(nearest("xyzzy", {"num-heads", "num-layers"}), "");
  EXPECT_EQ(suggestion("benhc", {"bench"}), "; did you mean bench?");
}

struct Positional {
  std::vector<std::string> files;
  bool json = false;
};

std::string read_positional(Positional& options, const std::vector<std::string>& arguments) {
  OptionTable table;
  table.add("input", options.files, "Files.").positional().required();
  table.add("json", options.json, "As JSON.");
  table.read_flags(arguments);
  try {
    table.finish();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(OptionTable, ArgumentsWithoutAFlag) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"a", "b", "--json"},
                                             {"--json", "a", "b"},
                                             {"a", "--json", "b"},
                                             {"--input", "a", "b"}}) {
    Positional options;
    EXPECT_EQ(read_positional(options, arguments), "");
    EXPECT_EQ(options.files, (std::vector<std::string>{"a", "b"}));
  }
  Positional options;
  EXPECT_TRUE(contains(read_positional(options, {"-x", "a"}), "unexpected argument '-x'"));
  EXPECT_TRUE(contains(read_positional(options, {}), "--input"));
  EXPECT_TRUE(contains(read_positional(options, {"a", "--input", "b"}), "contradict"));
}

}  // namespace
}  // namespace bloomery
