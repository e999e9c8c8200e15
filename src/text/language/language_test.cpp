#include "text/language/language.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/shared_data.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

TEST(Language, OfSentences) {
  EXPECT_EQ(language_of("The quick brown fox jumps over the lazy dog."), "en");
  EXPECT_EQ(language_of("Der schnelle braune Fuchs springt über den faulen Hund."), "de");
  EXPECT_EQ(language_of("Съешь же ещё этих мягких французских булок."), "ru");
  EXPECT_EQ(language_of("すべての人間は、生れながらにして自由である。"), "ja");
  EXPECT_EQ(language_of("123 456 -- !!"), "");
  EXPECT_EQ(language_of(""), "");
  EXPECT_GT(known_languages().size(), 60);
}

// Pieces of 100 characters from the second halves of the declaration, of which the profiles hold
// the most frequent n-grams. (From profiles of the first halves alone: see docs/benchmarks.md.)
TEST(Language, OfShortPieces) {
  const auto path = shared_data("corpora/udhr/udhr.jsonl.xz");
  if (!path) GTEST_SKIP() << kNoSharedData;
  const std::map<std::string, std::string> codes = {
      {"eng", "en"},      {"fra", "fr"},   {"deu_1996", "de"},      {"spa", "es"},
      {"por_PT", "pt"},   {"ita", "it"},   {"nld", "nl"},           {"swe", "sv"},
      {"dan", "da"},      {"nob", "no"},   {"fin", "fi"},           {"pol", "pl"},
      {"ces", "cs"},      {"slk", "sk"},   {"ron_2006", "ro"},      {"hun", "hu"},
      {"tur", "tr"},      {"vie", "vi"},   {"ind", "id"},           {"rus", "ru"},
      {"ukr", "uk"},      {"bul", "bg"},   {"ell_monotonic", "el"}, {"heb", "he"},
      {"arb", "ar"},      {"pes_1", "fa"}, {"hin", "hi"},           {"jpn", "ja"},
      {"cmn_hans", "zh"}, {"kor", "ko"}};
  std::istringstream lines(read_xz(*path));
  int pieces = 0, right = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto entry = nlohmann::json::parse(line);
    const auto code = codes.find(entry.at("code").get<std::string>());
    if (code == codes.end()) continue;
    const auto text = entry.at("text").get<std::string>();
    std::vector<std::size_t> starts;  // of characters
    for (std::size_t at = 0; at < text.size(); at += utf8_at(text, at).length) starts.push_back(at);
    for (std::size_t i = starts.size() / 2; i + 100 < starts.size(); i += 100) {
      ++pieces;
      right += language_of(text.substr(starts[i], starts[i + 100] - starts[i])) == code->second;
    }
  }
  ASSERT_GT(pieces, 1000);
  EXPECT_GE(right, 0.99 * pieces);
  RecordProperty("right", right);
  RecordProperty("pieces", pieces);
}

}  // namespace
}  // namespace bloomery
