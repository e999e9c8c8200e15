#include "checkpoint/tokenizer_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "checkpoint/checkpoint_case.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

void save_with(const fs::path& folder, const TokenizerOptions& options) {
  Snapshot snapshot = flat_snapshot(1);
  snapshot.files = read_tokenizer_files(options);
  set_carried_tokenizer(snapshot.state, options);
  CheckpointWriter writer(folder, single_rank_group(), {});
  writer.save(std::move(snapshot));
  const auto outcome = writer.finish();
  ASSERT_TRUE(outcome->committed) << outcome->message;
}

TEST(TokenizerFiles, OfEveryKindTravelAndAreFoundAfterAMove) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "words");
  folder.file("words/tokenizer.json", "{\"a\":1}");
  folder.file("words/tokenizer_config.json", "{}");
  folder.file("words/weights.bin", "no part of it");
  folder.file("my vocab", "v");
  folder.file("my merges", "m");
  folder.file("odd name.tiktoken", "t");
  const std::string at = folder.path().string();
  struct Case {
    TokenizerOptions options;
    std::vector<std::string> names;
  };
  for (const auto& [options, names] :
       {Case{{.path = at + "/words"}, {"tokenizer.json", "tokenizer_config.json"}},
        Case{{.type = "GPT2BPETokenizer",
        .vocab_file = at + "/my vocab",
        .merge_file = at + "/my merges"},
             {"vocab.json", "merges.txt"}},
        Case{{.type = "BertWordPieceCase", .vocab_file = at + "/my vocab"}, {"vocab.txt"}},
        Case{{.type = "TikTokenizer", .tokenizer_model = at + "/odd name.tiktoken"},
             {"odd_name.tiktoken"}},
        Case{{.type = "NullTokenizer", .vocab_size = 9}, {}}}) {
    const TestFolder run(TestFolder::Where::disk);
    save_with(run.path() / "before", options);
    fs::rename(run.path() / "before", run.path() / "after");
    const CheckpointReader reader(run.path() / "after" / "step-1");
    ThreadPool pool(1);
    EXPECT_EQ(reader.problems(pool), std::vector<std::string>{});
    const auto carried = carried_tokenizer(reader);
    ASSERT_TRUE(carried);
    EXPECT_EQ(carried->type, options.type);
    EXPECT_EQ(carried->vocab_size, options.vocab_size);
    const auto given = tokenizer_files(options), copies = tokenizer_files(*carried);
    ASSERT_EQ(copies.size(), names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(copies[i].name, names[i]);
      EXPECT_EQ(copies[i].source.parent_path(), fs::absolute(reader.folder()));
      EXPECT_EQ(read_file(copies[i].source), read_file(given[i].source));
    }
    EXPECT_NO_THROW(require_same_tokenizer(reader, *read_tokenizer_files(options)));
  }
}

TEST(TokenizerFiles, AChatTemplateComesAlong) {
  const TemporaryFolder folder;
  folder.file("chat_template.jinja", "old");
  const TokenizerOptions options{.path = folder.file("tokenizer.json", "{\"a\":1}").string()};
  const auto contents = [&](const std::string& chat_template) {
    const auto files = read_tokenizer_files(options, chat_template);
    std::string all;
    for (const SnapshotFile& file : *files) {
      all += file.name + "=" + file.contents + ";";
    }
    return all;
  };
  EXPECT_EQ(contents(""), "tokenizer.json={\"a\":1};chat_template.jinja=old;");
  EXPECT_EQ(contents("new"), "tokenizer.json={\"a\":1};chat_template.jinja=new;");
  save_with(folder.path() / "run", options);
  const CheckpointReader reader(folder.path() / "run" / "step-1");
  EXPECT_EQ(tokenizer_files(*carried_tokenizer(reader)).size(), 2u);
  EXPECT_NO_THROW(require_same_tokenizer(reader, *read_tokenizer_files(options, "new")));
}

TEST(TokenizerFiles, AnotherTokenizerIsAnError) {
  const TemporaryFolder folder;
  const TokenizerOptions options{.path = folder.file("tokenizer.json", "{\"a\":1}").string()};
  save_with(folder.path() / "run", options);
  const fs::path step = folder.path() / "run" / "step-1";
  folder.file("tokenizer.json", "{\"a\":2}");  // trained again, into the same place
  EXPECT_THROW(require_same_tokenizer(CheckpointReader(step), *read_tokenizer_files(options)),
               Error);
  EXPECT_THROW(require_same_tokenizer(CheckpointReader(step), {}), Error);
  EXPECT_EQ(read_file(carried_tokenizer(CheckpointReader(step))->path), "{\"a\":1}");
  std::ofstream(step / "tokenizer.json") << "{\"a\":3}";
  EXPECT_THROW(carried_tokenizer(CheckpointReader(step)), Error);
}

TEST(TokenizerFiles, ACheckpointWithoutThemSaysNothing) {
  const TestFolder folder;
  save_step(folder.path(), 1);
  const CheckpointReader reader(folder.path() / "step-1");
  EXPECT_FALSE(carried_tokenizer(reader));
  EXPECT_NO_THROW(require_same_tokenizer(reader, {{"tokenizer.json", "{}"}}));
}

}  // namespace
}  // namespace bloomery
