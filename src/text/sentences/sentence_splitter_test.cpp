#include "text/sentences/sentence_splitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "harness/shared_data.h"
#include "text/input/json_line.h"
#include "text/input/line_format.h"
#include "text/input/line_reader.h"

namespace bloomery {
namespace {

using Sentences = std::vector<std::string_view>;

Sentences split(std::string_view text, bool keep_newlines = false) {
  Sentences sentences;
  split_sentences(text, keep_newlines, sentences);
  return sentences;
}

TEST(SentenceSplitter, StopsWithWhatClosesThem) {
  EXPECT_EQ(split("One. Two! Three?  Four"), (Sentences{"One.", "Two!", "Three?", "Four"}));
  EXPECT_EQ(split("\"Stop!\" he said. (So it was.) End."),
            (Sentences{"\"Stop!\"", "he said.", "(So it was.)", "End."}));
  EXPECT_EQ(split("Done.[5] Next."), (Sentences{"Done.", "[5] Next."}));
  EXPECT_EQ(split("He left . \" Then came"), (Sentences{"He left . \"", "Then came"}));
  EXPECT_EQ(split("Really?! Yes... No"), (Sentences{"Really?!", "Yes...", "No"}));
}

TEST(SentenceSplitter, FullStopsInsideSentences) {
  for (const char* whole :
       {"Mr. Smith met J. R. Jones at 5 p.m. on Sept. 3.", "It costs 3.50 or so.",
        "See www.example.com for more.", "It was big, approx. two metres.", "Wait... and see.",
        "In the U.S. Senate.", "The ex-Sen. Brown spoke.", "He waited . . . and left."}) {
    EXPECT_EQ(split(whole), Sentences{whole});
  }
  EXPECT_EQ(split("At 5 p.m. The train left."), (Sentences{"At 5 p.m.", "The train left."}));
  EXPECT_EQ(split("It was 1999. Nobody knew."), (Sentences{"It was 1999.", "Nobody knew."}));
  EXPECT_EQ(split("So said I. \"Come.\""), (Sentences{"So said I.", "\"Come.\""}));
}

TEST(SentenceSplitter, OtherScripts) {
  EXPECT_EQ(split("今日は。「はい。」そう！"), (Sentences{"今日は。", "「はい。」", "そう！"}));
  EXPECT_EQ(split("यह है। वह था।"), (Sentences{"यह है।", "वह था।"}));
  EXPECT_EQ(split("Это он. Вот она."), (Sentences{"Это он.", "Вот она."}));
  EXPECT_EQ(split("Так и т. д. это всё."), (Sentences{"Так и т. д. это всё."}));
}

TEST(SentenceSplitter, WhiteSpace) {
  EXPECT_EQ(split(" One two.\n\nThree four. \n"), (Sentences{" One two.", "Three four."}));
  EXPECT_EQ(split(" One two.\n\nThree four. \n", true),
            (Sentences{" One two.\n\n", "Three four."}));
  EXPECT_EQ(split("One two.\u3000Three four.\u00A0"), (Sentences{"One two.", "Three four."}));
  EXPECT_TRUE(split("").empty());
  EXPECT_TRUE(split(" \n ").empty());
}

// No text may take more than linear time: a megabyte of each is split in well under a second.
TEST(SentenceSplitter, HostileTextsAreLinear) {
  for (const std::string unit :
       {".", "!", ". ", ".\"", "\"", " ", "a.", "。", "...", "\xE2\x80\x9D"}) {
    std::string text;
    while (text.size() < (1 << 20)) {
      text += unit;
    }
    const auto start = std::chrono::steady_clock::now();
    Sentences sentences = split(text);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    EXPECT_LT(elapsed.count(), 2.0) << unit;
    std::size_t last = 0;
    for (const std::string_view sentence : sentences) {
      const auto begin = static_cast<std::size_t>(sentence.data() - text.data());
      ASSERT_GE(begin, last);
      last = begin + sentence.size();
    }
    EXPECT_LE(last, text.size());
  }
}

// Paragraphs between blank lines, which may have spaces.
std::vector<std::string> paragraphs(const std::string& text) {
  std::vector<std::string> found;
  std::size_t begin = 0, at = 0;
  while ((at = text.find('\n', at)) != text.npos) {
    const std::size_t after = std::min(text.find_first_not_of(" \n", at), text.size());
    const std::size_t last = text.rfind('\n', after - 1);
    if (last > at) {
      found.push_back(text.substr(begin, at - begin));
      begin = last + 1;
    }
    at = last + 1;
  }
  found.push_back(text.substr(begin));
  return found;
}

std::vector<std::string> documents(const std::string& path) {
  const bool jsonl = path.find(".jsonl") != path.npos;
  LineReader reader({path}, {.max_line_bytes = 64 << 20});
  LineChunk chunk;
  JsonLineParser parser({"text"});
  std::vector<std::string> found;
  std::string whole;
  while (reader.next(chunk)) {
    whole += chunk.bytes();
    for (std::size_t at = 0; jsonl && at < chunk.used;) {
      if (parser.parse(next_line(chunk.bytes(), at))) {
        found.emplace_back(parser.text(0));
      }
    }
  }
  return jsonl ? found : paragraphs(whole);
}

// tools/golden/sentences.py asked NLTK's punkt for 5,400 sentences.
TEST(SentenceSplitter, AgreesWithPunkt) {
  const auto folder = shared_data("");
  if (!folder) GTEST_SKIP() << kNoSharedData;
  const std::filesystem::path data = *folder;
  std::istringstream golden(golden_file("sentences_punkt.txt"));
  std::map<std::string, std::vector<std::string>> files;
  double common = 0, ours = 0, theirs = 0;
  for (std::string line; std::getline(golden, line);) {
    std::istringstream words(line);
    std::string file;
    std::size_t number = 0, step = 0, at = 0;
    words >> file >> number;
    if (!files.contains(file)) {
      files[file] = documents(data / file);
    }
    const std::string& text = files[file].at(number);
    std::set<std::size_t> expected;
    while (words >> step) {
      expected.insert(at += step);
    }
    Sentences sentences = split(text);
    for (std::size_t i = 1; i < sentences.size(); ++i) {
      const auto begin = static_cast<std::size_t>(sentences[i].data() - text.data());
      common += expected.contains(begin) ? 1 : 0;
    }
    ours += static_cast<double>(sentences.size()) - 1;
    theirs += static_cast<double>(expected.size());
  }
  EXPECT_GT(theirs, 5000);
  const double f1 = 2 * common / (ours + theirs);
  RecordProperty("f1", std::to_string(f1));
  EXPECT_GE(f1, 0.97);
}

}  // namespace
}  // namespace bloomery
