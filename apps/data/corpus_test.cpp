// The commands that clean corpora, as users run them.
#include <gtest/gtest.h>

#include "apps/common/command_case.h"
#include "base/file.h"
#include "base/temporary_folder.h"

namespace bloomery {
namespace {

class CorpusCommands : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() / name; }
  std::string read(const std::string& name) const { return read_file(path(name)); }
  TemporaryFolder folder_;
};

TEST_F(CorpusCommands, CleanFilterDedup) {
  folder_.file("in.jsonl",
               "{\"text\": \"The schÃ¶n people of that time\"}\n{\"text\": \"no\"}\n"
               "{\"text\": \"The schön people of that time\"}\n");
  expect_command({"data", "clean", "--input", path("in.jsonl"), "--output", path("clean")});
  EXPECT_TRUE(
      read("clean/in.jsonl").starts_with("{\"text\": \"The schön people of that time\"}\n"));
  const std::string said = expect_command({"data", "filter", "--input", path("clean/in.jsonl"),
                                           "--output", path("good"), "--min-characters", "5"});
  EXPECT_NE(said.find("dropped 1: length: under 5 characters"), said.npos) << said;
  expect_command({"data", "dedup", "--input", path("good/in.jsonl"), "--output", path("unique"),
                  "--method", "exact"});
  EXPECT_EQ(read("unique/in.jsonl"), "{\"text\": \"The schön people of that time\"}\n");
}

TEST_F(CorpusCommands, DecontaminateAndExtractWiki) {
  const std::string question =
      "which of the rivers that run through the old town by the sea was bridged first";
  folder_.file("in.jsonl", "{\"text\": \"So " + question + " and why\"}\n{\"text\": \"kept\"}\n");
  folder_.file("test.jsonl", "{\"text\": \"" + question + "\"}\n");
  expect_command({"data", "decontaminate", "--input", path("in.jsonl"), "--output", path("out"),
                  "--test-sets", path("test.jsonl")});
  EXPECT_TRUE(read("out/in.jsonl").starts_with("{\"text\": \"kept\""));
  folder_.file("wiki.xml",
               "<mediawiki><siteinfo><base>http://w.org/Main</base></siteinfo>\n<page>\n"
               "<title>Ore</title>\n<ns>0</ns>\n<id>7</id>\n<revision>\n<id>8</id>\n"
               "<text>'''Ore''' is [[rock|stone]] with metal.</text>\n</revision>\n</page>\n"
               "</mediawiki>\n");
  expect_command({"data", "extract-wiki", "--input", path("wiki.xml"), "--output", path("wiki")});
  EXPECT_NE(read("wiki/AA/wiki_00").find("Ore is stone with metal."), std::string::npos);
}

// Else a corpus that was cleaned of older test sets would pass for a new one.
TEST_F(CorpusCommands, ListsThatChangedAreAnotherRun) {
  const std::string question =
      "which of the rivers that run through the old town by the sea was bridged first";
  folder_.file("in.jsonl", "{\"text\": \"So " + question + " and why\", \"url\": \"b.com/1\"}\n" +
                               "{\"text\": \"kept\", \"url\": \"c.com/1\"}\n");
  const std::string other =
      "how many of the bridges over the quiet river were built before the war";
  folder_.file("test.jsonl", "{\"text\": \"" + other + "\"}\n");
  folder_.file("blocked", "a.com\n");
  const Arguments decontaminate = {"data",     "decontaminate", "--input",     path("in.jsonl"),
                                   "--output", path("out"),     "--test-sets", path("test.jsonl")};
  const Arguments filter = {
      "data",       "filter",    "--input", path("in.jsonl"),    "--output",
      path("good"), "--url-key", "url",     "--blocked-domains", path("blocked")};
  for (const Arguments& command : {decontaminate, filter}) {
    expect_command(command);
    expect_command(command);  // finished already
  }
  folder_.file("test.jsonl", "{\"text\": \"" + other + "\"}\n{\"text\": \"" + question + "\"}\n");
  folder_.file("blocked", "a.com\nb.com\n");
  for (Arguments command : {decontaminate, filter}) {
    const std::string said = expect_command(command, kBadInput);
    EXPECT_NE(said.find("exists already"), said.npos) << said;
    command.push_back("--overwrite");
    expect_command(command);
  }
  EXPECT_TRUE(read("out/in.jsonl").starts_with("{\"text\": \"kept\""));
  EXPECT_TRUE(read("good/in.jsonl").starts_with("{\"text\": \"kept\""));
  const std::string said = expect_command({"data", "decontaminate", "--input", "-", "--output",
                                           path("o"), "--test-sets", path("test.jsonl")},
                                          kBadInput);
  EXPECT_NE(said.find("is read twice"), said.npos) << said;
}

TEST_F(CorpusCommands, MistakesEndWithTwoAndWriteNothing) {
  const std::string input = folder_.file("in.jsonl", "{\"text\": \"a\"}\nbad\n");
  const std::string empty = folder_.file("empty.jsonl", ""),
                    table = folder_.file("table.parquet", "PAR1\x15\x04\x15 more");
  const std::vector<Arguments> mistakes = {
      {"data", "clean", "--input", empty, "--output", path("o")},
      {"data", "dedup", "--input", empty, "--output", path("o")},
      {"data", "clean", "--input", table, "--output", path("o")},
      {"data", "filter", "--input", input, "--output", path("o")},  // nothing to do
      {"data", "filter", "--input", input, "--output", path("o"), "--rules", "gophr"},
      {"data", "filter", "--input", path("none"), "--output", path("o"), "--rules", "c4"},
      {"data", "clean", "--input", input, "--output", path("o"), "--strict"},
      {"data", "dedup", "--input", input},
      {"data", "decontaminate", "--input", input, "--output", path("o"), "--test-sets", input},
      {"data", "extract-wiki", "--input", input, "--output", path("o")}};
  for (const Arguments& arguments : mistakes) {
    const std::string said = expect_command(arguments, kBadInput);
    EXPECT_EQ(said.find("unknown command"), said.npos) << said;
    EXPECT_TRUE(!std::filesystem::exists(path("o")) || visible_names(path("o")).empty());
  }
}

}  // namespace
}  // namespace bloomery
