// The flags of Megatron-DeepSpeed and the argument lists of its scripts, against the option table.
// With BLOOMERY_WRITE_DOCS=1 the page of options and the table of scripts are written instead of
// compared.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/file.h"
#include "train/plan/options_case.h"
#include "train/plan/options_page.h"

namespace bloomery {
namespace {

std::filesystem::path root() {
  const char* folder = std::getenv("BLOOMERY_ROOT");
  return folder == nullptr ? "." : folder;
}

void expect_page(const std::string& text, const char* page) {
  const std::filesystem::path path = root() / "docs" / page;
  if (std::getenv("BLOOMERY_WRITE_DOCS") != nullptr) {
    std::ofstream(path) << text;
  }
  EXPECT_EQ(read_file(path), text) << page << " is out of date: BLOOMERY_WRITE_DOCS=1 writes it";
}

// The table is a part of docs/megatron.md, between two comments; people write the rest.
void expect_table_of_scripts(const std::string& table) {
  constexpr std::string_view kBegin = "<!-- scripts: written by a test -->\n";
  constexpr std::string_view kEnd = "<!-- end of scripts -->\n";
  const std::string page = read_file(root() / "docs/megatron.md");
  const std::size_t begin = page.find(kBegin), end = page.find(kEnd);
  ASSERT_TRUE(begin != page.npos && end != page.npos && begin < end)
      << "docs/megatron.md lacks the comments around the table of scripts";
  const std::size_t first = begin + kBegin.size();
  expect_page(page.substr(0, first) + table + page.substr(end), "megatron.md");
}

TEST(Scripts, EveryFlagOfMegatronIsKnownAndOnThePage) {
  PretrainOptions options;
  OptionTable table;
  describe(table, options);
  PretrainOptions tuning = finetune_defaults({});
  OptionTable finetune;
  describe(finetune, tuning);
  expect_page(options_page(table, read_file(root() / "tests/golden/megatron_flags.txt"), finetune),
              "options.md");
}

struct Script {
  std::string name, program;
  std::vector<std::string> arguments;
  nlohmann::json deepspeed;
};

std::vector<Script> scripts(const char* file) {
  std::vector<Script> all;
  for (const auto& entry : nlohmann::json::parse(read_file(root() / "tests/golden" / file))) {
    all.push_back({entry["name"], entry.value("program", "pretrain_gpt"), entry["arguments"],
                   entry["deepspeed"]});
  }
  return all;
}

// Of one model: the tensor, pipeline and sequence degrees that the script asks for.
int model_ranks(const Script& script) {
  int ranks = 1;
  for (const char* flag : {"--tensor-model-parallel-size", "--pipeline-model-parallel-size",
                           "--ds-sequence-parallel-size"}) {
    const auto found = std::ranges::find(script.arguments, flag);
    ranks *= found == script.arguments.end() ? 1 : std::stoi(*std::next(found));
  }
  return ranks;
}

// The fewest that its numbers allow: a configuration which says how many micro-batches a rank
// accumulates fixes them.
int data_ranks(const Script& script) {
  const nlohmann::json& config = script.deepspeed;
  for (const char* key :
       {"gradient_accumulation_steps", "train_batch_size", "train_micro_batch_size_per_gpu"}) {
    if (config.is_null() || !config.contains(key)) {
      return 1;
    }
  }
  return config["train_batch_size"].get<int>() /
         (config["train_micro_batch_size_per_gpu"].get<int>() *
          config["gradient_accumulation_steps"].get<int>());
}

std::string outcome(Script script, int ranks) {
  const auto config = std::filesystem::path(::testing::TempDir()) / "ds_config_of_a_script.json";
  if (!script.deepspeed.is_null()) {
    std::ofstream(config) << script.deepspeed.dump();
  }
  for (std::string& argument : script.arguments) {
    if (argument == "DEEPSPEED_CONFIG") argument = config.string();
  }
  const std::string family = script.program.substr(script.program.find('_') + 1);
  script.arguments.insert(script.arguments.begin(), {"--model-family", family});
  script.arguments.insert(script.arguments.end(), {"--ranks-as-threads", std::to_string(ranks)});
  std::string text = PretrainCase(script.arguments).error;
  for (std::size_t at = 0; (at = text.find(config.string(), at)) != text.npos;) {
    text.replace(at, config.string().size(), "its configuration");
  }
  std::filesystem::remove(config);
  const std::size_t title = text.find(" problems with the options:\n  ");
  if (title != text.npos) text.erase(0, text.find('\n') + 3);
  for (std::size_t at = 0; (at = text.find("\n  ", at)) != text.npos;) {
    text.replace(at, 3, "<br>");
  }
  const std::string with = ranks == 1 ? "" : concat(", ", ranks, " ranks");
  return text.empty() ? "accepted" + with : "refused: " + text;
}

TEST(Scripts, ArgumentListsParseOrSayWhyNot) {
  std::string table = "| script | result |\n| --- | --- |\n";
  int num_accepted = 0;
  for (const char* file : {"readme_commands.json", "megatron_scripts.json"}) {
    for (const Script& script : scripts(file)) {
      const int ranks = model_ranks(script) * data_ranks(script);
      const std::string what = outcome(script, ranks);
      num_accepted += what.starts_with("accepted");
      EXPECT_LE(ranks, 32) << script.name;
      EXPECT_EQ(what.find("ranks hold a model"), std::string::npos) << script.name << ": " << what;
      EXPECT_EQ(what.find("data-parallel ranks"), std::string::npos) << script.name << ": " << what;
      EXPECT_EQ(what.find("unknown"), std::string::npos) << script.name << ": " << what;
      EXPECT_EQ(what.find("required"), std::string::npos) << script.name << ": " << what;
      table += "| " + script.name + " | " + what + " |\n";
    }
  }
  EXPECT_GE(num_accepted, 10);
  expect_table_of_scripts(table);
}

}  // namespace
}  // namespace bloomery
