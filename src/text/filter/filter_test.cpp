#include "text/filter/filter.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "harness/shared_data.h"
#include "text/filter/quality.h"
#include "text/filter/repair.h"
#include "text/filter/text_parts.h"
#include "text/filter/url_rules.h"
#include "text/filter/words.h"

namespace bloomery {
namespace {

// tests/long/corpus_rules.py compares many more.
TEST(Quality, DatatrovesDecisions) {
  int dropped = 0;
  for (const auto& entry : nlohmann::json::parse(golden_file("corpus_rules.json"))) {
    const auto text = entry.at("text").get<std::string>();
    const auto drops = [&](const char* rule) { return entry.at(rule).get<std::string>() != ""; };
    EXPECT_EQ(!gopher_quality(text).empty(), drops("gopher-quality")) << text;
    EXPECT_EQ(!gopher_repetition(text).empty(), drops("gopher-repetition")) << text;
    EXPECT_EQ(!fineweb_quality(text).empty(), drops("fineweb-quality")) << text;
    dropped += drops("gopher-quality") ? 1 : 0;
  }
  EXPECT_GT(dropped, 5);
}

TEST(Quality, C4JudgesLineByLine) {
  std::map<std::string, std::int64_t> dropped;
  std::string text =
      "A first sentence[12] stays here. And one more.\nno end of line\nToo short.\n"
      "Please enable JavaScript now.\nSee our Privacy Policy for more.\n"
      "Another line [edit] is good! Is it? Yes it is.\n" +
      std::string(1001, 'x') + " is too long.\n";
  EXPECT_EQ(c4_quality(text, {}, dropped), "");
  EXPECT_EQ(text,
            "A first sentence stays here. And one more.\nAnother line  is good! Is it? Yes it is.");
  EXPECT_EQ(dropped.size(), 5);
  std::string lorem = "This has lorem Ipsum in it.", bracket = "This one { has a bracket.",
              few = "Only one sentence here.";
  EXPECT_EQ(c4_quality(lorem, {}, dropped), "c4: lorem ipsum");
  EXPECT_EQ(c4_quality(bracket, {}, dropped), "c4: a curly bracket");
  EXPECT_NE(c4_quality(few, {}, dropped), "");
}

TEST(Text, LinesAsPythonHasThem) {
  const auto lines = split_lines("a\r\nb\rc\n\nd\x0C\u2028e\n");
  EXPECT_EQ(lines, (std::vector<std::string_view>{"a", "b", "c", "", "d", "", "e"}));
  EXPECT_EQ(split_at_newlines("\na\n\nb\n", 2), (std::vector<std::string_view>{"\na", "b\n"}));
  EXPECT_EQ(trim("\u00A0 a\u3000"), "a");
}

// tests/long/corpus_rules.py compares many more.
TEST(Quality, WordsAreSpacys) {
  std::size_t cases = 0;
  for (const auto& entry : nlohmann::json::parse(golden_file("corpus_words.json"))) {
    const auto text = entry.at("text").get<std::string>();
    const auto words = entry.at("words").get<std::vector<std::string>>();
    EXPECT_TRUE(std::ranges::equal(words_of(text), words)) << text;
    ++cases;
  }
  EXPECT_GT(cases, 30);
}

TEST(Repair, IsFtfys) {
  std::size_t changed = 0;
  for (const auto& entry : nlohmann::json::parse(golden_file("repaired.json"))) {
    auto text = entry.at("text").get<std::string>();
    const std::string given = text;
    EXPECT_EQ(repair_text(text), entry.at("fixed") != given) << given;
    EXPECT_EQ(text, entry.at("fixed").get<std::string>()) << given;
    changed += text != given ? 1 : 0;
  }
  EXPECT_GT(changed, 50);
}

TEST(Repair, CommonDamage) {
  const std::pair<const char*, const char*> cases[] = {
      {"schÃ¶n", "schön"},
      {"âœ” No problems", "✔ No problems"},
      {"the â€\u0153quotesâ€\u009D", "the \"quotes\""},
      {"ÃƒÂ©", "é"},  // twice
      {"Ð¿Ñ€Ð¸Ð²ÐµÑ‚", "привет"},
      {"CAFÉ™", "CAFÉ™"},  // meant
      {"&eacute;&amp;&#39;&#x41; &unknown; &", "é&'A &unknown; &"},
      {"<b>&amp;</b>", "<b>&amp;</b>"},
      {"a\r\nb\rc\u2028d", "a\nb\nc\nd"},
      {"\uFEFFx\x07\x1B[31mred\x1B[0m", "xred"},
      {"\uFB01ne \u01C6 \uFF21\uFF22\u3000", "fine dž AB "},
      {"e\u0301", "é"},
      {"a\u00A0b", "a\u00A0b"},
      {"‘it’s’", "'it's'"}};
  for (const auto& [given, expected] : cases) {
    std::string text = given;
    EXPECT_EQ(repair_text(text), std::string(given) != expected) << given;
    EXPECT_EQ(text, expected);
  }
}

// Vectors of Megatron's cleanup_fix_dataset.
TEST(JoinLines, GeneralCleaning) {
  const std::pair<const char*, const char*> cases[] = {{"word\n\nnext", "word next"},
                                                       {"end.\nnext", "end.\nnext"},
                                                       {"a   b\n c", "a b c"},
                                                       {"a \nb", "a \nb"},
                                                       {"a\n  b", "a  b"}};
  for (const auto& [given, expected] : cases) {
    std::string text = given;
    join_lines(text);
    EXPECT_EQ(text, expected);
  }
}

// Vectors of Megatron's blacklist_urls.
TEST(Urls, OpenWebTextsFaults) {
  const std::pair<const char*, UrlFault> cases[] = {
      {"https://docs.google.co.uk/x", UrlFault::domain},
      {"http://mygoogle.com/a", UrlFault::none},
      {"http://a.b", UrlFault::malformed},
      {"http://site.org/pic.JPG?x=1", UrlFault::extension},
      {"http://site.org/a.7z", UrlFault::extension},
      {"http://site.org/x?y=a.jpg", UrlFault::none},
      {"http://a", UrlFault::too_short},
      {"ftp://site.org/x", UrlFault::malformed},
      {"http://10.0.0.1:80/x", UrlFault::none},
      {"http://site.org:/x", UrlFault::malformed},
      {"http://site.org/a b", UrlFault::malformed},
      {"http://-site.org/x", UrlFault::malformed},
      {"HTTPS://Site.ORG./", UrlFault::none},
      {"https://en.wikipedia.org/wiki/X", UrlFault::domain},
      {"http://youtu.be/abc", UrlFault::domain}};
  for (const auto& [url, fault] : cases) EXPECT_EQ(openwebtext_fault(url), fault) << url;
  EXPECT_TRUE(is_within("a.b.c", {"b.c"}));
  EXPECT_FALSE(is_within("ab.c", {"b.c"}));
}

class FilterTest : public testing::Test {
 protected:
  FilterTest() { options_.output = folder_.path() / "out"; }
  FilterSummary run() {
    return filter(options_, "filter",
                  {.messages = messages_, .go_on = [this] { return !exists(interrupted_by_); }});
  }
  std::string output(const std::string& name) { return read_file(folder_.path() / "out" / name); }

  TemporaryFolder folder_;
  FilterOptions options_;
  std::ostringstream messages_;
  std::filesystem::path interrupted_by_ = "/nowhere";  // a run ends when this file is there
};

TEST_F(FilterTest, SaysWhatItDroppedAndWhy) {
  options_.input = {folder_.file(
      "a.jsonl",
      "{\"text\": \"short\", \"url\": \"http://a.org/\"}\n"
      "{\"text\": \"A longer text in English, of the people.\", \"url\": \"http://x.bad.com/\"}\n"
      "not json\n"
      "{\"url\": \"http://b.org/\", \"text\": \"A longer text in English, of the "
      "people&amp;all.\"}\n"
      "{\"text\": \"Alle Menschen sind frei und gleich an Würde geboren.\", \"url\": "
      "\"http://c.org/\"}\n")};
  options_.url_key = "url";
  options_.blocked_domains = folder_.file("blocked", "# comment\nbad.com\n");
  options_.min_characters = 10;
  options_.languages = {"en"};
  options_.repair = true;
  options_.keep_dropped = true;
  ASSERT_TRUE(problems(options_).empty());
  const FilterSummary summary = run();
  EXPECT_EQ(output("a.jsonl"),
            "{\"url\": \"http://b.org/\", \"text\": \"A longer text in English, of the "
            "people&all.\"}\n");
  EXPECT_EQ(summary.report.changed, 1);
  EXPECT_EQ(summary.report.bad_lines.count, 1);
  const TransformReport report = TransformReport::parse(output("report.json"));
  EXPECT_EQ(report.json(), summary.report.json());
  EXPECT_EQ(report.dropped.at("language: de").count, 1);
  EXPECT_EQ(report.dropped.at("url: a blocked domain").samples[0].offset, 42);
  EXPECT_EQ(report.dropped.at("length: under 10 characters").samples[0].beginning, "short");
  EXPECT_EQ(std::ranges::count(output("a.dropped.jsonl"), '\n'), 3);
  EXPECT_NE(report.text("filter").find("kept 1 of 4 documents (25.0 %)"), std::string::npos);
}

TEST_F(FilterTest, PlainTextBecomesObjects) {
  options_.input = {folder_.file("a.txt", "say \"hi\"\tnow\nno\n")};
  options_.min_characters = 4;
  run();
  EXPECT_EQ(output("a.jsonl"), "{\"text\": \"say \\\"hi\\\"\\tnow\"}\n");
}

// Killed between two saves, a run goes on and gives the same bytes.
TEST_F(FilterTest, GoesOnWhereItWas) {
  std::string lines;
  for (int i = 0; lines.size() < (std::size_t{70} << 20); ++i) {
    lines += "{\"text\": \"" + std::string(static_cast<std::size_t>(500 + i % 1000), 'a') + "\"}\n";
  }
  options_.input = {folder_.file("a.jsonl", lines)};
  options_.min_characters = 700;
  options_.keep_dropped = true;
  interrupted_by_ = folder_.path() / "out" / "a.jsonl.progress";
  EXPECT_TRUE(run().interrupted);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "out" / "a.jsonl"));
  interrupted_by_ = "/nowhere";
  const FilterSummary resumed = run();
  EXPECT_NE(messages_.str().find("going on with"), std::string::npos);
  const std::string kept = output("a.jsonl"), dropped = output("a.dropped.jsonl");
  options_.overwrite = true;
  const FilterSummary whole = run();
  EXPECT_TRUE(output("a.jsonl") == kept);
  EXPECT_TRUE(output("a.dropped.jsonl") == dropped);
  EXPECT_EQ(resumed.report.json(), whole.report.json());
  EXPECT_EQ(visible_names(folder_.path() / "out").size(), 3);
}

TEST_F(FilterTest, MistakesAreNamed) {
  EXPECT_FALSE(problems(options_).empty());  // nothing to do
  options_.rules = {"gophr"};
  options_.languages = {"xx"};
  options_.openwebtext_urls = true;
  EXPECT_EQ(problems(options_).size(), 3);
  options_ = {};
  options_.rules = {"fineweb", "c4"};
  EXPECT_TRUE(problems(options_).empty());
  EXPECT_EQ(filter_steps(options_).size(), 5);
}

}  // namespace
}  // namespace bloomery
