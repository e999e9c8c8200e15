// A program on one text.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/regex/program.h"

namespace bloomery::regex {

class Matcher {
 public:
  // `text` must be valid UTF-8; both must outlive the matcher.
  Matcher(const Program& program, std::string_view text);

  // The end of the match that begins at `at`; nothing when there is none.
  std::optional<std::size_t> match_at(std::size_t at) { return run(0, at, /*is_look=*/false); }
  bool may_begin_at(std::size_t at) const { return can_go(0, at); }
  // More steps were taken than any expression that people write needs.
  struct TooLong {};

 private:
  // What is left to try. Only `fails` is not a way to go on: when everything above it was in vain,
  // the state does not lead to a match, from wherever it is reached.
  struct Choice {
    enum class Kind : std::uint8_t { go_on, shorten, lengthen, fails };
    Kind kind;
    std::uint32_t pc;
    std::uint32_t left;     // lengthen: how many more characters
    std::size_t at, least;  // shorten: not below `least`
  };
  enum class Known : std::uint8_t { nothing, fails, succeeds };

  enum class Outcome : std::uint8_t { goes_on, fails, succeeds };

  // The end of the match of a body. A look asks only whether there is one.
  std::optional<std::size_t> run(std::uint32_t pc, std::size_t at, bool is_look);
  Outcome step(std::uint32_t& pc, std::size_t& at);
  Outcome take_set(const Instruction& it, std::size_t& at) const;
  Outcome take_run(const Instruction& it, std::uint32_t pc, std::size_t& at);
  Outcome take_split(const Instruction& it, std::uint32_t& pc, std::size_t at);
  Outcome take_group(const Instruction& it, std::uint32_t& pc, std::size_t& at);
  // The next state to try; fails when nothing is left above `bottom`.
  Outcome back_up(std::size_t bottom, std::uint32_t& pc, std::size_t& at);
  Outcome shorten(std::uint32_t& pc, std::size_t& at);
  Outcome lengthen(std::uint32_t& pc, std::size_t& at);
  // What is known of a state; from now on its failure will be.
  Outcome enter(std::uint32_t memo, std::size_t at);
  bool looks_behind(const Instruction& it, std::uint32_t pc, std::size_t at);
  bool holds(Assertion assertion, std::size_t at) const;
  bool is_word_at(std::size_t at) const;

  bool can_go(std::uint32_t pc, std::size_t at) const {
    const Beginnings& first = program_.beginnings[pc];
    return at < text_.size() ? first.bytes[static_cast<unsigned char>(text_[at])] : first.at_end;
  }
  std::size_t character_before(std::size_t at) const;

  // Once a text has taken many steps, what became of states is remembered.
  void count_step() {
    if (++steps_ > limit_) [[unlikely]]
      note_many_steps();
  }
  void note_many_steps();
  Known known(std::uint32_t memo, std::size_t at) const;
  void remember(std::uint32_t memo, std::size_t at, Known what);

  const Program& program_;
  std::string_view text_;
  std::vector<Choice> choices_;
  std::size_t behind_end_ = std::string_view::npos;  // where a body that looks behind must end
  std::uint64_t steps_ = 0, limit_;
  bool remembers_ = false;
  std::vector<std::uint64_t> memory_;  // two bits for each place of each memo
};

}  // namespace bloomery::regex
