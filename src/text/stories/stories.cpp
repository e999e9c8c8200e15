#include "text/stories/stories.h"

#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "text/stories/derivation.h"
#include "text/stories/story_text.h"
#include "text/stories/words.h"

namespace bloomery {
namespace {

// The likeliest few words that could have come instead.
std::string expected_words(const Grammar& grammar, const Derivation& derivation) {
  constexpr std::size_t kShown = 5;
  const std::map<WordId, double> words = derivation.continuations();
  if (words.empty()) return "the story ends here";
  std::string text = words.size() > 1 ? "expected one of" : "expected";
  std::size_t shown = 0;
  for (const auto& [word, probability] : words) {
    text += concat(" '", grammar.word(word), "'");
    if (++shown == kShown && words.size() > kShown) {
      return text + concat(" and ", words.size() - kShown, " more");
    }
  }
  return text;
}

}  // namespace

StoryTeller::StoryTeller() : StoryTeller(story_text()) {}

StoryTeller::StoryTeller(std::string_view grammar) : grammar_(grammar) {}

std::string StoryTeller::story(std::uint64_t seed, std::uint64_t number) const {
  const RandomKey key = random_key(seed, "stories");
  std::uint32_t decision = 0;
  const auto draw = [&](std::uint64_t below) {
    const RandomBlock bits =
        philox(key, {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32),
                     decision++, 0u});
    return (bits[0] * below) >> 32;
  };
  Derivation derivation(grammar_);
  std::vector<std::string_view> words;
  while (!derivation.complete()) {
    words.emplace_back(grammar_.word(derivation.take_drawn(draw)));
  }
  return written(words);
}

StoryTeller::Score StoryTeller::score(std::string_view text) const {
  const auto words = story_words(text);
  if (!words) {
    return {.nll = 0, .fault = "characters or spaces that stories do not have"};
  }
  Derivation derivation(grammar_);
  double nll = 0;
  for (std::size_t i = 0; i < words->size(); ++i) {
    const Derivation before = derivation;
    WordId id = 0;
    const double probability =
        !derivation.complete() && grammar_.find((*words)[i], id) ? derivation.take(id) : 0.0;
    if (probability == 0) {
      return {.nll = 0,
              .fault = concat("word ", i + 1, " is '", (*words)[i],
                              "': ", expected_words(grammar_, before))};
    }
    nll -= std::log(probability);
  }
  if (!derivation.complete()) {
    return {.nll = 0,
            .fault = concat("ends after ", words->size(),
                            " words: ", expected_words(grammar_, derivation))};
  }
  return {.nll = nll, .fault = {}};
}

}  // namespace bloomery
