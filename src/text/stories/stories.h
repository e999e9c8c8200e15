// The corpus that the program carries with it: little stories of a grammar (story_text.h), as many
// as wanted, whose probabilities are known. A model of them cannot have a lower loss than their
// mean -ln P, on average.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/stories/grammar.h"

namespace bloomery {

class StoryTeller {
 public:
  StoryTeller();
  // Tells the texts of another grammar.
  explicit StoryTeller(std::string_view grammar);

  // Story `number` of the endless sequence of a seed: a function of both alone, on every machine.
  std::string story(std::uint64_t seed, std::uint64_t number) const;

  struct Score {
    double nll = 0;     // -ln P of the text
    std::string fault;  // why it is no story; empty: it is one
    bool accepted() const { return fault.empty(); }
  };
  // Of a whole text, byte for byte.
  Score score(std::string_view text) const;

  const Grammar& grammar() const { return grammar_; }
  double entropy() const { return grammar_.entropy(); }  // the mean nll of stories, in nats

 private:
  Grammar grammar_;
};

}  // namespace bloomery
