#include <gtest/gtest.h>

#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "text/wiki/extract_wiki.h"
#include "text/wiki/wiki_dump.h"
#include "text/wiki/wiki_text.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

TEST(WikiText, MarkupToProse) {
  const std::pair<const char*, const char*> cases[] = {
      {"'''Bold''' and ''italic'' and '''''both'''''.", "Bold and \"italic\" and both."},
      {"A [[link]] to [[the target|a label]], [[plural]]s.", "A link to a label, plurals."},
      {"x [[File:A.png|thumb|A [[nested]] caption]] y [[Category:Z]][[de:Wort]]", "x  y"},
      {"See [http://a.org the page] and [http://b.org].", "See the page and ."},
      {"a{{template|{{inner}}|b}}c {{{param}}}", "ac"},
      {"before\n{| class=x\n| cell {| in |}\n|}\nafter", "before\nafter"},
      {"text<ref name=a>note</ref> more<ref name=a/> end<!-- hidden -->", "text more end"},
      {"<div>gone</div>kept <b>bold</b><br/>", "kept bold"},
      {"a <math>x^2</math> b <code>c</code>", "a formula_1 b codice_1"},
      {"== Head ==\ntext\n== Empty ==\n=== Sub ===\n== Last ==\nend", "Head.\ntext\nLast.\nend"},
      {"* list\n# list\n; term\n: indented\n(in parentheses)\nprose", "prose"},
      {"__NOTOC__ a &amp; b&nbsp;c", "a & b\u00A0c"},
      {"open {{never closed\nnext line", "open\nnext line"},
      {"[[Star Trek: Voyager]] and [[broken", "Star Trek: Voyager and [[broken"}};
  for (const auto& [markup, text] : cases) EXPECT_EQ(plain_wiki_text(markup), text) << markup;
}

TEST(WikiDump, BytesThatAreNoTextAreReplaced) {
  const std::vector<WikiPage> found = articles(
      "<page><title>T\xFF</title><ns>0</ns><id>1</id><revision><id>2</id>"
      "<text>(A) \xF7\xBF\xBF\xBF &#x7FFFFFFF; word\xE2</text></revision></page>");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].title, "T\uFFFD");
  EXPECT_TRUE(is_utf8(found[0].markup)) << found[0].markup;
  EXPECT_TRUE(is_utf8(plain_wiki_text(found[0].markup)));
}

// Damaged markup costs time in proportion to its length, and no stack.
TEST(WikiText, NothingIsEverClosed) {
  for (const char* part : {"[[", "{{", "{|\n", "<ref>", "[[a]", "}}]]", "{{\n", "&"}) {
    std::string markup;
    for (int i = 0; i < 200000; ++i) markup += part;
    plain_wiki_text(markup);
  }
}

std::string page(int id, const std::string& title, const std::string& text,
                 const std::string& further = "<ns>0</ns>") {
  return "<page><title>" + title + "</title>" + further + "<id>" + std::to_string(id) +
         "</id><revision><id>9" + std::to_string(id) + "</id><text xml:space=\"preserve\">" + text +
         "</text></revision></page>\n";
}

class ExtractWiki : public testing::Test {
 protected:
  ExtractWikiSummary run(const std::string& dump) {
    std::ostringstream messages;
    options_.input = folder_.file("dump.xml", dump);
    options_.output = folder_.path() / "out";
    return extract_wiki(options_, {.messages = messages, .go_on = [] { return true; }});
  }
  TemporaryFolder folder_;
  ExtractWikiOptions options_;
};

TEST_F(ExtractWiki, WritesWhatWikiExtractorWrites) {
  const ExtractWikiSummary summary = run(
      "<mediawiki><siteinfo><base>https://en.wikipedia.org/wiki/Main_Page</base></siteinfo>\n" +
      page(12, "A &amp; B", "First &lt;ref&gt;x&lt;/ref&gt;line.\n\nSecond \"line\".") +
      page(13, "Old name", "#REDIRECT [[X]]", "<ns>0</ns><redirect title=\"X\" />") +
      page(14, "Talk:A", "talk", "<ns>1</ns>") + page(15, "Empty", "{{stub}}") + "</mediawiki>\n");
  EXPECT_EQ(read_file(folder_.path() / "out/AA/wiki_00"),
            "{\"id\": \"12\", \"revid\": \"912\", \"url\": "
            "\"https://en.wikipedia.org/wiki?curid=12\", \"title\": \"A & B\", \"text\": \"First "
            "line.\\nSecond \\\"line\\\".\"}\n");
  EXPECT_EQ(summary.articles, 1);
  EXPECT_EQ(summary.empty, 1);
}

TEST_F(ExtractWiki, ManyFilesInTheOrderOfTheDump) {
  std::string dump;
  for (int i = 0; i < 250; ++i) {
    dump += page(i, "T" + std::to_string(i), std::string(20000, 'a') + " end.");
  }
  options_.file_bytes = 30000;  // two articles
  EXPECT_EQ(run(dump).files, 125);
  EXPECT_TRUE(read_file(folder_.path() / "out/AB/wiki_24").starts_with("{\"id\": \"248\""));
}

TEST_F(ExtractWiki, WhatIsNoDumpIsNamed) {
  EXPECT_THROW(run("no pages here"), Error);
  EXPECT_THROW(run("BZh91AY&SY"), Error);
  EXPECT_EQ(visible_names(folder_.path()), std::vector<std::string>{"dump.xml"});
}

}  // namespace
}  // namespace bloomery
