#include "tokenizer/hf/char_run.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "tokenizer/hf/char_classes.h"
#include "tokenizer/unicode/classes.h"
#include "tokenizer/utf8.h"

namespace bloomery::hf {

// Reads the expression one construct at a time; every method returns false at what it does not
// know.
class CharRunParser {
 public:
  explicit CharRunParser(std::string_view regex) : regex_(regex) {}

  bool parse(CharRun& run) {
    while (at_ < regex_.size()) {
      CharRun::Link link;
      if (!read_one(link) || !read_repetition(link)) return false;
      if (!run.links_.empty() && could_give_back(run.links_.back(), link)) return false;
      run.links_.push_back(std::move(link));
    }
    return !run.links_.empty() && run.links_.back().least > 0;
  }

 private:
  // A link that takes more than it needs may have to give back for the next to match. Not if it is
  // one optional character that the next does not take.
  static bool could_give_back(const CharRun::Link& link, const CharRun::Link& next) {
    if (link.least == link.most) return false;
    const bool one_character = link.most == 1 && link.ranges.size() == 1 &&
                               link.ranges[0].first == link.ranges[0].last &&
                               link.classes.empty() && !link.inverted;
    return !one_character || next.takes(link.ranges[0].first);
  }

  bool at_end() const { return at_ == regex_.size(); }
  bool next_is(char c) const { return !at_end() && regex_[at_] == c; }

  char32_t take() {
    const Utf8Char next = utf8_at(regex_, at_);
    at_ += static_cast<std::size_t>(next.length);
    return next.code;
  }

  bool read_one(CharRun::Link& link) {
    constexpr std::string_view kOperators = "|()?*+{}.^$]";
    const char32_t code = take();
    if (code == '[') return read_set(link);
    if (code == '\\') return read_escape(link);
    if (code < 0x80 && kOperators.find(static_cast<char>(code)) != kOperators.npos) return false;
    link.ranges.push_back({code, code});
    return true;
  }

  bool read_escape(CharRun::Link& link) {
    constexpr std::string_view kLetters = "ntrfv", kMeanings = "\n\t\r\f\v";
    if (at_end()) return false;
    const char32_t code = take();
    if (code == 's') {
      link.classes.push_back(is_space);
    } else if (code == 'd') {
      link.classes.push_back([](char32_t c) { return char_class(c) == CharClass::decimal; });
    } else if (code == 'p') {
      return read_property(link);
    } else if (code < 0x80 && kLetters.find(static_cast<char>(code)) != kLetters.npos) {
      const auto meaning = static_cast<char32_t>(kMeanings[kLetters.find(static_cast<char>(code))]);
      link.ranges.push_back({meaning, meaning});
    } else if (code < 0x80 && std::isalnum(static_cast<int>(code)) == 0) {
      link.ranges.push_back({code, code});
    } else {
      return false;
    }
    return true;
  }

  bool read_property(CharRun::Link& link) {
    const std::size_t close = regex_.find('}', at_);
    if (!next_is('{') || close == std::string_view::npos) return false;
    const std::string_view name = regex_.substr(at_ + 1, close - at_ - 1);
    at_ = close + 1;
    if (name == "N") {
      link.classes.push_back([](char32_t c) { return kNumber.contains(char_class(c)); });
    } else if (name == "Nd") {
      link.classes.push_back([](char32_t c) { return char_class(c) == CharClass::decimal; });
    } else if (name == "L") {
      link.classes.push_back([](char32_t c) { return kLetter.contains(char_class(c)); });
    } else if (name == "M") {
      link.classes.push_back([](char32_t c) { return kMark.contains(char_class(c)); });
    } else if (name == "P") {
      link.classes.push_back([](char32_t c) { return char_class(c) == CharClass::punctuation; });
    } else if (name == "S") {
      link.classes.push_back([](char32_t c) { return char_class(c) == CharClass::symbol; });
    } else {
      return false;
    }
    return true;
  }

  bool read_set(CharRun::Link& link) {
    if (next_is('^')) {
      link.inverted = true;
      ++at_;
    }
    while (!at_end() && !next_is(']')) {
      const char32_t code = take();
      if (code == '&' || (code == '[' && next_is('^'))) return false;
      if (code == '[') {  // a set inside the set adds to it
        if (!read_set(link)) return false;
        continue;
      }
      if (code == '\\') {
        if (!read_escape(link)) return false;
        continue;
      }
      char32_t last = code;
      if (next_is('-') && at_ + 1 < regex_.size() && regex_[at_ + 1] != ']') {
        ++at_;
        last = take();
        if (last == '\\' || last == '[' || last < code) return false;
      }
      link.ranges.push_back({code, last});
    }
    if (at_end()) return false;
    ++at_;
    return !link.ranges.empty() || !link.classes.empty();
  }

  bool read_number(std::size_t& number) {
    const std::size_t begin = at_;
    number = 0;
    while (!at_end() && regex_[at_] >= '0' && regex_[at_] <= '9' && at_ - begin < 3) {
      number = number * 10 + static_cast<std::size_t>(regex_[at_++] - '0');
    }
    return at_ > begin;
  }

  bool read_repetition(CharRun::Link& link) {
    if (next_is('?')) {
      ++at_;
      link.least = 0;
    } else if (next_is('+')) {
      ++at_;
      link.most = std::string_view::npos;
    } else if (next_is('{')) {
      ++at_;
      if (!read_number(link.least)) return false;
      link.most = link.least;
      if (next_is(',')) {
        ++at_;
        if (next_is('}')) {
          link.most = std::string_view::npos;
        } else if (!read_number(link.most)) {
          return false;
        }
      }
      if (!next_is('}') || link.least == 0 || link.most < link.least) return false;
      ++at_;
    }
    // '*' is not needed yet; a second operator makes it lazy or possessive.
    return !next_is('*') && !next_is('?') && !next_is('+') && !next_is('{');
  }

  std::string_view regex_;
  std::size_t at_ = 0;
};

std::optional<CharRun> CharRun::parse(std::string_view regex) {
  constexpr std::size_t kLongest = 1000;  // characters; sets inside sets take stack
  CharRun run;
  if (regex.size() > kLongest || !CharRunParser(regex).parse(run)) return std::nullopt;
  return run;
}

bool CharRun::Link::takes(char32_t code) const {
  const bool found =
      std::any_of(ranges.begin(), ranges.end(),
                  [&](const Range& r) { return code >= r.first && code <= r.last; }) ||
      std::any_of(classes.begin(), classes.end(), [&](auto* is) { return is(code); });
  return found != inverted;
}

std::size_t CharRun::end_of(std::string_view text, std::size_t at) const {
  const std::size_t begin = at;
  for (const Link& link : links_) {
    std::size_t count = 0;
    while (count < link.most && at < text.size()) {
      const Utf8Char next = utf8_at(text, at);
      if (!link.takes(next.code)) break;
      at += static_cast<std::size_t>(next.length);
      ++count;
    }
    if (count < link.least) return begin;
  }
  return at;
}

Match CharRun::find(std::string_view text, std::size_t from) const {
  while (from < text.size()) {
    const std::size_t end = end_of(text, from);
    if (end != from) return {from, end};
    from += static_cast<std::size_t>(utf8_at(text, from).length);
  }
  return {text.size(), text.size()};
}

}  // namespace bloomery::hf
