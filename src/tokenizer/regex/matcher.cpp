#include "tokenizer/regex/matcher.h"

#include <algorithm>

#include "tokenizer/utf8.h"

namespace bloomery::regex {
namespace {

constexpr std::uint64_t kStepsPerByte = 16, kFirstSteps = 10000;  // before states are remembered
constexpr std::uint64_t kMostSteps = 200'000'000, kMostStepsPerState = 16;
// Of a text that are remembered, in two bits each.
constexpr std::uint64_t kMostStates = std::uint64_t{1} << 27, kMostStatesPerByte = 1024;

}  // namespace

Matcher::Matcher(const Program& program, std::string_view text)
    : program_(program), text_(text), limit_(kFirstSteps + text.size() * kStepsPerByte) {}

void Matcher::note_many_steps() {
  const std::uint64_t states = (text_.size() + 1) * program_.num_memos;
  const std::uint64_t most = std::max(kMostStates, text_.size() * kMostStatesPerByte);
  if (remembers_ || states > most) throw TooLong{};
  remembers_ = true;
  memory_.assign(states / 32 + 1, 0);
  limit_ = steps_ + std::max(kMostSteps, states * kMostStepsPerState);
}

Matcher::Known Matcher::known(std::uint32_t memo, std::size_t at) const {
  const std::uint64_t state = memo * (text_.size() + 1) + at;
  return static_cast<Known>(memory_[state / 32] >> state % 32 * 2 & 3);
}

void Matcher::remember(std::uint32_t memo, std::size_t at, Known what) {
  const std::uint64_t state = memo * (text_.size() + 1) + at;
  memory_[state / 32] |= static_cast<std::uint64_t>(what) << state % 32 * 2;
}

std::size_t Matcher::character_before(std::size_t at) const {
  do {
    --at;
  } while ((static_cast<unsigned char>(text_[at]) & 0xC0) == 0x80);
  return at;
}

bool Matcher::is_word_at(std::size_t at) const {
  return at < text_.size() && program_.words.contains(utf8_at(text_, at).code);
}

bool Matcher::holds(Assertion assertion, std::size_t at) const {
  const bool is_end = at == text_.size();
  switch (assertion) {
    case Assertion::text_begin:
      return at == 0;
    case Assertion::text_end:
      return is_end;
    case Assertion::text_end_or_last_newline:
      return is_end || (at + 1 == text_.size() && text_[at] == '\n');
    case Assertion::line_begin:
      return at == 0 || (text_[at - 1] == '\n' && !is_end);
    case Assertion::line_end:
      return is_end || text_[at] == '\n';
    case Assertion::word_border:
    case Assertion::no_word_border:
      break;
  }
  const bool is_border = is_word_at(at) != (at > 0 && is_word_at(character_before(at)));
  return is_border == (assertion == Assertion::word_border);
}

Matcher::Outcome Matcher::enter(std::uint32_t memo, std::size_t at) {
  count_step();
  if (!remembers_ || behind_end_ != std::string_view::npos) return Outcome::goes_on;
  const Known what = known(memo, at);
  if (what == Known::fails) return Outcome::fails;
  if (what == Known::succeeds) return Outcome::succeeds;
  choices_.push_back({Choice::Kind::fails, memo, 0, at, 0});
  return Outcome::goes_on;
}

Matcher::Outcome Matcher::take_set(const Instruction& it, std::size_t& at) const {
  if (at == text_.size()) return Outcome::fails;
  const Utf8Char next = utf8_at(text_, at);
  at += static_cast<std::size_t>(next.length);
  return program_.sets[it.set].contains(next.code) ? Outcome::goes_on : Outcome::fails;
}

Matcher::Outcome Matcher::take_run(const Instruction& it, std::uint32_t pc, std::size_t& at) {
  if (const Outcome known = enter(it.memo, at); known != Outcome::goes_on) return known;
  const CompiledSet& set = program_.sets[it.set];
  const std::uint32_t most = it.greed == Greed::lazy ? it.least : it.most;
  std::size_t least_at = at;
  std::uint32_t count = 0;
  while (count < most && at < text_.size()) {
    const Utf8Char next = utf8_at(text_, at);
    if (!set.contains(next.code)) break;
    at += static_cast<std::size_t>(next.length);
    if (++count == it.least) least_at = at;
  }
  steps_ += count;
  if (count < it.least) return Outcome::fails;
  if (it.greed == Greed::lazy && it.most > it.least) {
    const std::uint32_t left = it.most == Node::kEndless ? it.most : it.most - it.least;
    choices_.push_back({Choice::Kind::lengthen, pc, left, at, 0});
  } else if (it.greed == Greed::greedy && at > least_at) {
    choices_.push_back({Choice::Kind::shorten, pc, 0, at, least_at});
  }
  return Outcome::goes_on;
}

// Gives one character of a run back.
Matcher::Outcome Matcher::shorten(std::uint32_t& pc, std::size_t& at) {
  Choice& choice = choices_.back();
  pc = choice.pc + 1;
  do {
    at = choice.at = character_before(choice.at);
    ++steps_;
  } while (at > choice.least && !can_go(pc, at));
  const std::uint32_t memo = program_.code[choice.pc].memo + 1;
  if (at == choice.least) choices_.pop_back();
  return can_go(pc, at) ? enter(memo, at) : Outcome::fails;
}

// Takes one more character for a lazy run.
Matcher::Outcome Matcher::lengthen(std::uint32_t& pc, std::size_t& at) {
  Choice& choice = choices_.back();
  const Instruction& it = program_.code[choice.pc];
  pc = choice.pc + 1;
  at = choice.at;
  if (choice.left == 0 || take_set(it, at) == Outcome::fails) {
    choices_.pop_back();
    return Outcome::fails;
  }
  choice.at = at;
  if (choice.left != Node::kEndless) --choice.left;
  return enter(it.memo + 1, at);
}

Matcher::Outcome Matcher::back_up(std::size_t bottom, std::uint32_t& pc, std::size_t& at) {
  while (choices_.size() > bottom) {
    const Choice choice = choices_.back();
    Outcome outcome = Outcome::fails;
    switch (choice.kind) {
      case Choice::Kind::go_on:
        choices_.pop_back();
        pc = choice.pc;
        at = choice.at;
        return Outcome::goes_on;
      case Choice::Kind::shorten:
        outcome = shorten(pc, at);
        break;
      case Choice::Kind::lengthen:
        outcome = lengthen(pc, at);
        break;
      case Choice::Kind::fails:
        choices_.pop_back();
        remember(choice.pc, choice.at, Known::fails);
        break;
    }
    if (outcome != Outcome::fails) return outcome;
  }
  return Outcome::fails;
}

Matcher::Outcome Matcher::take_split(const Instruction& it, std::uint32_t& pc, std::size_t at) {
  const bool first = can_go(it.target, at), second = can_go(it.other, at);
  if (!first && !second) return Outcome::fails;
  if (first && second) {
    if (const Outcome known = enter(it.memo, at); known != Outcome::goes_on) return known;
    choices_.push_back({Choice::Kind::go_on, it.other, 0, at, 0});
  }
  pc = first ? it.target : it.other;
  return Outcome::goes_on;
}

bool Matcher::looks_behind(const Instruction& it, std::uint32_t pc, std::size_t at) {
  behind_end_ = at;
  for (std::uint32_t count = 0; count <= it.most; ++count) {
    if (count >= it.least && run(pc + 1, at, /*is_look=*/false)) return true;
    if (at == 0) break;
    at = character_before(at);
  }
  return false;
}

Matcher::Outcome Matcher::take_group(const Instruction& it, std::uint32_t& pc, std::size_t& at) {
  count_step();
  const std::size_t behind_end = behind_end_;
  behind_end_ = std::string_view::npos;
  bool holds = false;
  switch (it.group) {
    case GroupKind::atomic:
      if (const std::optional<std::size_t> end = run(pc + 1, at, /*is_look=*/false)) {
        at = *end;
        holds = true;
      }
      break;
    case GroupKind::ahead:
      holds = run(pc + 1, at, /*is_look=*/true).has_value();
      break;
    case GroupKind::not_ahead:
      holds = !run(pc + 1, at, /*is_look=*/true);
      break;
    case GroupKind::behind:
      holds = looks_behind(it, pc, at);
      break;
    case GroupKind::not_behind:
      holds = !looks_behind(it, pc, at);
      break;
  }
  behind_end_ = behind_end;
  pc = it.target;
  return holds ? Outcome::goes_on : Outcome::fails;
}

Matcher::Outcome Matcher::step(std::uint32_t& pc, std::size_t& at) {
  const Instruction& it = program_.code[pc];
  switch (it.kind) {
    case Instruction::Kind::set:
      ++pc;
      return take_set(it, at);
    case Instruction::Kind::run:
      return take_run(it, pc++, at);
    case Instruction::Kind::split:
      return take_split(it, pc, at);
    case Instruction::Kind::jump:
      pc = it.target;
      return Outcome::goes_on;
    case Instruction::Kind::assertion:
      ++pc;
      return holds(it.assertion, at) ? Outcome::goes_on : Outcome::fails;
    case Instruction::Kind::group:
      return take_group(it, pc, at);
    case Instruction::Kind::accept:
      break;
  }
  const bool is_end = behind_end_ == std::string_view::npos || at == behind_end_;
  return is_end ? Outcome::succeeds : Outcome::fails;
}

std::optional<std::size_t> Matcher::run(std::uint32_t pc, std::size_t at, bool is_look) {
  const std::size_t bottom = choices_.size();
  for (;;) {
    Outcome outcome = step(pc, at);
    if (outcome == Outcome::fails) outcome = back_up(bottom, pc, at);
    if (outcome == Outcome::fails) return std::nullopt;
    if (outcome == Outcome::goes_on) continue;
    for (std::size_t i = bottom; is_look && i < choices_.size(); ++i) {
      const Choice& choice = choices_[i];
      if (choice.kind == Choice::Kind::fails) remember(choice.pc, choice.at, Known::succeeds);
    }
    choices_.resize(bottom);
    return at;
  }
}

}  // namespace bloomery::regex
