#include <gtest/gtest.h>

#include <algorithm>

#include "apps/common/command_case.h"
#include "base/file.h"
#include "base/temporary_folder.h"

namespace bloomery {
namespace {

class OpenWebText : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() / name; }
  std::string read(const std::string& name) const { return read_file(path(name)); }
  TemporaryFolder folder_;
};

TEST_F(OpenWebText, BlacklistUrls) {
  folder_.file("a.txt", "http://site.org/a\nhttps://docs.google.co.uk/x\nhttp://a.b\nhttp://a\n");
  folder_.file("b.txt", "http://mygoogle.com/\nhttp://site.org/a\nhttp://x.org/pic.JPG?x=1\n");
  const std::string said = expect_command({"blacklist_urls", folder_.path(), path("out")});
  EXPECT_EQ(read("out"), "http://site.org/a\nhttp://mygoogle.com/\n");
  for (const char* line :
       {"[DOMAIN BLACKLIST]: https://docs.google.co.uk/x\n", "[MALFORMED URL]: http://a.b\n",
        "[SHORT URL]: http://a\n", "[DUPLICATE URL]: http://site.org/a\n",
        "[EXTENTION BLACKLIST]: http://x.org/pic.JPG?x=1\n"}) {
    EXPECT_NE(said.find(line), said.npos) << said;
  }
  expect_command({"blacklist_urls", folder_.path(), path("out")}, kBadInput);  // it is there
  expect_command({"blacklist_urls", folder_.path()}, kBadInput);
}

TEST_F(OpenWebText, CleanupFixDataset) {
  const std::string filler(600, 'x');
  const std::string lines =
      "{\"text\": \"short\", \"n\": 1}\n{\"text\": \"" + filler + "word\\n\\nnext  schÃ¶n\"}\n";
  folder_.file("in.json", lines);
  expect_command({"cleanup_fix_dataset", "--input-files", path("in.json"), "--tasks", "remove_512",
                  "general_cleaning", "--output-path", path("out")});
  EXPECT_EQ(read("out/in_filtered.json"), "{\"text\": \"short\", \"n\": 1}\n");
  EXPECT_EQ(read("out/in_cleaned.json"), "{\"text\": \"" + filler + "word next schÃ¶n\"}\n");
  expect_command({"cleanup_fix_dataset", "--input-files", path("in.json"), "--tasks", "remove_512",
                  "ftfy_fix_text", "general_cleaning", "--output-path", path("out"),
                  "--overwrite"});
  EXPECT_EQ(read("out/in_cleaned.json"), "{\"text\": \"" + filler + "word\\n\\nnext  schön\"}\n");
  expect_command({"cleanup_fix_dataset", "--input-files", path("in.json"), "--tasks", "remov",
                  "--output-path", path("out")},
                 kBadInput);
}

TEST_F(OpenWebText, CleanupDataset) {
  std::string english, german;
  for (int i = 0; i < 30; ++i) {
    english += "All human beings are born free and equal in dignity. ";
    german += "Alle Menschen sind frei und gleich an Würde geboren. ";
  }
  folder_.file(
      "in.json",
      "{\"text\": \"" + german + "\"}\n{\"text\": \"" + english +
          "\"}\n{\"text\": \"This is a short English text about the people of that time.\"}\n");
  const std::string said = expect_command({"cleanup_dataset", path("in.json"), path("out.json")});
  EXPECT_EQ(read("out.json"), "{\"text\": \"" + english + "\"}\n");
  EXPECT_NE(said.find("dropped 1: language: de"), said.npos) << said;
  EXPECT_NE(said.find("dropped 1: fewer than 128 tokens"), said.npos) << said;
}

TEST_F(OpenWebText, FromDuplicatesToACorpusWithoutThem) {
  const std::string text = "a text that is long enough to be compared with another one";
  folder_.file("in.json", "{\"text\": \"" + text + "\", \"url\": \"u1\"}\n{\"text\": \"" + text +
                              "!\", \"url\": \"u2\"}\n{\"text\": \"other\"}\nbad\n");
  expect_command(
      {"find_duplicates", "--inputs", path("in.json"), "url", "--output", path("pairs")});
  EXPECT_TRUE(read("pairs").starts_with("{\"u1\":[{\"u2\":0.98"));
  expect_command({"group_duplicate_url", path("pairs"), path("groups"), "0.9"});
  EXPECT_EQ(read("groups"), "{\"0\":[\"u1\",\"u2\"]}\n");
  expect_command({"remove_group_duplicates", path("groups"), path("in.json"), path("out")});
  EXPECT_EQ(read("out"),
            "{\"text\": \"" + text + "\", \"url\": \"u1\"}\n{\"text\": \"other\"}\nbad\n");
  expect_command({"find_duplicates", "--inputs", path("in.json"), "--output", path("x")},
                 kBadInput);
  expect_command({"find_duplicates", "--inputs", path("in.json"), "url", "--output", path("x"),
                  "--num-bands", "7"},
                 kBadInput);
}

TEST_F(OpenWebText, FilterNgrams) {
  const std::string test =
      "one two three four five six seven eight nine ten eleven twelve thirteen";
  std::string before, after;
  for (int i = 0; i < 40; ++i) {
    before += "aa" + std::to_string(i) + " word. ";
    after += "bb" + std::to_string(i) + " word. ";
  }
  folder_.file("lambada", "{\"text\": \"" + test + "\"}\n");
  folder_.file("in", "{\"t\": \"clean\", \"split_id\": \"x\"}\n{\"t\": \"" + before + test + ". " +
                         after + "\", \"k\": {\"a\": 1}}\n{\"t\": \"" + test + "\"}\n");
  const std::string said =
      expect_command({"filter_ngrams", "--tasks", "lambada", "--lambada-path", path("lambada"),
                      "--dedup-dataset", path("in"), "t", "--output", path("out")});
  const std::string out = read("out");
  EXPECT_TRUE(out.starts_with("{\"t\": \"clean\", \"split_id\": \"x-lambada-0000000001-0000\"}\n"));
  EXPECT_NE(out.find("\"k\": {\"a\": 1}, \"split_id\": \"lambada-0000000002-0001\"}\n"), out.npos);
  EXPECT_EQ(std::ranges::count(out, '\n'), 3);
  EXPECT_NE(said.find("dropped 1: nothing long enough beside a test text"), said.npos) << said;
  expect_command({"filter_ngrams", "--tasks", "squad", "--dedup-dataset", path("in"), "t",
                  "--output", path("o2")},
                 kBadInput);
}

TEST_F(OpenWebText, IdsAndMerging) {
  folder_.file("a.json", "{\"text\": \"x\"}");
  folder_.file("b.json", "{}\n{\"adlr_id\": \"old\", \"k\": 2}\nbad\n");
  expect_command({"merge_jsons", "--json_path", folder_.path(), "--output_file", path("all.json")});
  EXPECT_EQ(read("all.json"), "{\"text\": \"x\"}\n{}\n{\"adlr_id\": \"old\", \"k\": 2}\nbad\n");
  expect_command({"add_id", "--input-file", path("all.json"), "--output-file", path("ids"),
                  "--id-prefix", "P"});
  EXPECT_EQ(read("ids"),
            "{\"text\": \"x\", \"adlr_id\": \"P-0000000001\"}\n{\"adlr_id\": \"P-0000000002\"}\n"
            "{\"adlr_id\": \"P-0000000003\", \"k\": 2}\n");
}

}  // namespace
}  // namespace bloomery
