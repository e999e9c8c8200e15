#include "text/stories/stories.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/md5.h"
#include "text/stories/derivation.h"
#include "text/stories/words.h"

namespace bloomery {
namespace {

constexpr int kSamples = 10000;

std::vector<WordId> ids_of(const Grammar& grammar, std::string_view story) {
  std::vector<WordId> ids;
  const auto words = story_words(story);
  for (const std::string_view word : words.value()) {
    EXPECT_TRUE(grammar.find(word, ids.emplace_back())) << word;
  }
  return ids;
}

TEST(Stories, AreAFunctionOfSeedAndNumber) {
  const StoryTeller one, other;
  std::set<std::string> all;
  for (std::uint64_t number = 0; number < 1000; ++number) {
    const std::string story = one.story(7, number);
    EXPECT_EQ(story, other.story(7, number));
    all.insert(story);
    all.insert(one.story(8, number));
  }
  EXPECT_EQ(all.size(), 2000u) << "stories repeat";
  EXPECT_NE(one.story(7, std::uint64_t{1} << 32), one.story(7, 0));
}

// Changing the grammar or how decisions are drawn changes every corpus made so far.
TEST(Stories, TheFirstOnesStay) {
  const StoryTeller teller;
  EXPECT_EQ(teller.story(1234, 0),
            "Once upon a time there lived Mia, a dreamy girl who loved painting. One sunny "
            "evening, Mia walked to the meadow with her good friend, the tiny goat. Suddenly "
            "dark clouds came and it began to snow. \"Quick, into the hut!\" bleated the goat. "
            "They sat at a wooden table and sang songs until the sun came out. It was lovely in "
            "the hut. And they are still singing today.");
  std::string all;
  for (std::uint64_t number = 0; number < 1000; ++number) {
    all += teller.story(1234, number) + "\n";
  }
  EXPECT_EQ(md5_hex(all), "8b5bea80ac751099e749380d53361fb9");
}

TEST(Stories, AreAcceptedWithTheEntropyAsMeanScore) {
  const StoryTeller teller;
  double sum = 0, squares = 0, length = 0;
  for (std::uint64_t number = 0; number < kSamples; ++number) {
    const std::string story = teller.story(1, number);
    const StoryTeller::Score score = teller.score(story);
    ASSERT_TRUE(score.accepted()) << story << '\n' << score.fault;
    sum += score.nll;
    squares += score.nll * score.nll;
    length += static_cast<double>(story_words(story)->size());
  }
  const double mean = sum / kSamples;
  const double error = std::sqrt((squares / kSamples - mean * mean) / kSamples);
  EXPECT_NEAR(mean, teller.entropy(), 4 * error) << "standard error " << error;
  EXPECT_LT(error, 0.01 * teller.entropy());
  EXPECT_NEAR(length / kSamples, teller.grammar().mean_length(), 0.5);
}

TEST(Stories, AreOfTheSizeThatASmallModelLearns) {
  const StoryTeller teller;
  EXPECT_GE(teller.grammar().num_words(), 350u);
  EXPECT_LE(teller.grammar().num_words(), 700u);
  for (std::uint64_t number = 0; number < kSamples; ++number) {
    const std::string story = teller.story(2, number);
    const auto spaces = std::count(story.begin(), story.end(), ' ');
    ASSERT_GE(spaces + 1, 50) << story;
    ASSERT_LE(spaces + 1, 85) << story;
  }
}

// Along stories, what can come next has probabilities that sum to 1, and the product of those of
// the words that came is what the scorer says: two ways that share no decision table.
TEST(Stories, ContinuationsSumToOneAndMultiplyToTheScore) {
  const StoryTeller teller;
  const Grammar& grammar = teller.grammar();
  for (std::uint64_t number = 0; number < 500; ++number) {
    const std::string story = teller.story(3, number);
    Derivation derivation(grammar);
    double nll = 0;
    for (const WordId word : ids_of(grammar, story)) {
      const std::map<WordId, double> next = derivation.continuations();
      double total = 0;
      for (const auto& [id, probability] : next) total += probability;
      ASSERT_NEAR(total, 1.0, 1e-12);
      ASSERT_TRUE(next.contains(word));
      nll -= std::log(next.at(word));
      ASSERT_NEAR(derivation.take(word), next.at(word), 1e-12);
    }
    EXPECT_TRUE(derivation.complete());
    EXPECT_TRUE(derivation.continuations().empty());
    EXPECT_NEAR(nll, teller.score(story).nll, 1e-9);
  }
}

// Any word of the grammar in place of another: accepted exactly when it could follow there and the
// rest still holds, which a derivation by continuations alone decides.
TEST(Stories, AWordChangedIsAcceptedOnlyWhereTheGrammarHasIt) {
  const StoryTeller teller;
  const Grammar& grammar = teller.grammar();
  int rejected = 0, accepted = 0;
  for (std::uint64_t number = 0; number < 300; ++number) {
    std::vector<WordId> ids = ids_of(grammar, teller.story(4, number));
    const std::size_t at = (number * 2654435761u) % ids.size();
    ids[at] = static_cast<WordId>((ids[at] + 1 + number * 40503u) % grammar.num_words());
    std::vector<std::string_view> words;
    bool possible = true;
    Derivation derivation(grammar);
    for (const WordId id : ids) {
      words.emplace_back(grammar.word(id));
      possible = possible && derivation.continuations().contains(id) && derivation.take(id) > 0;
    }
    const std::string text = written(words);
    EXPECT_EQ(teller.score(text).accepted(), possible && derivation.complete()) << text;
    ++(possible ? accepted : rejected);
  }
  EXPECT_GE(rejected, 250);
}

TEST(Stories, CutRepeatedAndIncoherentOnesAreRejected) {
  const StoryTeller teller;
  for (std::uint64_t number = 0; number < 300; ++number) {
    const std::string story = teller.story(5, number);
    const std::size_t cut = 1 + number * 40503u % (story.size() - 1);
    EXPECT_FALSE(teller.score(story.substr(0, cut)).accepted()) << story.substr(0, cut);
    EXPECT_FALSE(teller.score(story.substr(cut)).accepted()) << story.substr(cut);
    EXPECT_FALSE(teller.score(story + ' ' + story).accepted());
    EXPECT_FALSE(teller.score(story + ' ').accepted());
    const std::size_t sentence = story.find(". ") + 2;
    EXPECT_FALSE(teller.score(story.substr(0, sentence) + story).accepted());
    std::string renamed = story;
    const std::size_t name = story.find("lived ") + 6;
    renamed.replace(name, story.find(',', name) - name, "Nobody");
    EXPECT_FALSE(teller.score(renamed).accepted()) << renamed;
  }
  EXPECT_NE(teller.score("Once upon a dragon").fault.find("word 4 is 'dragon': expected 'time'"),
            std::string::npos)
      << teller.score("Once upon a dragon").fault;
  EXPECT_NE(teller.score("Once upon").fault.find("ends after 2 words"), std::string::npos);
}

TEST(Stories, HeroesKeepTheirNames) {
  const StoryTeller teller;
  int renamed_stories = 0;
  for (std::uint64_t number = 0; number < 300; ++number) {
    std::string story = teller.story(6, number);
    const std::size_t name = story.find("lived ") + 6;
    const std::string hero = story.substr(name, story.find(',', name) - name);
    const std::size_t again = story.find(' ' + hero, name + hero.size());
    if (again == std::string::npos) continue;
    ++renamed_stories;
    story.replace(again + 1, hero.size(), hero == "Mia" ? "Ella" : "Mia");
    EXPECT_FALSE(teller.score(story).accepted()) << story;
  }
  EXPECT_GE(renamed_stories, 250);
}

}  // namespace
}  // namespace bloomery
