#include "text/sentences/sentence_splitter.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "text/sentences/sentence_words.h"
#include "tokenizer/unicode/classes.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

// Words longer than this are in no list, which bounds the look back from a stop.
constexpr std::size_t kLongestWord = 24;

enum class Stop { none, period, mark, wide };  // wide: ends a sentence without white space

Stop stop_kind(char32_t code) {
  switch (code) {
    case '.':
      return Stop::period;
    case '!':
    case '?':
    case 0x0589:  // Armenian
    case 0x061F:  // Arabic question mark
    case 0x06D4:  // Urdu
    case 0x0964:  // danda
    case 0x0965:
    case 0x1362:  // Ethiopic
    case 0x203C:  // double marks
    case 0x2047:
    case 0x2048:
    case 0x2049:
      return Stop::mark;
    case 0x3002:  // ideographic
    case 0xFF01:
    case 0xFF0E:
    case 0xFF1F:
    case 0xFF61:
      return Stop::wide;
    default:
      return Stop::none;
  }
}

// Bytes with which a stop may begin; all others are passed over quickly.
constexpr std::array<bool, 256> make_stop_bytes() {
  std::array<bool, 256> table{};
  for (const std::size_t byte : std::initializer_list<std::size_t>{
           0x2E, 0x21, 0x3F, 0xD6, 0xD8, 0xDB, 0xE0, 0xE1, 0xE2, 0xE3, 0xEF}) {
    table[byte] = true;
  }
  return table;
}
constexpr std::array<bool, 256> kStopBytes = make_stop_bytes();

bool is_quote(char32_t code) {
  constexpr std::u32string_view kQuotes = U"\"'\u2018\u201C\u00AB";
  return kQuotes.find(code) != kQuotes.npos;
}

bool is_closing(char32_t code) {
  constexpr std::u32string_view kClosing =
      U"\"')]}\u00AB\u00BB\u2018\u2019\u201C\u201D\u203A\u3009\u300B\u300D\u300F\u3011\u3015\uFF09"
      U"\uFF3D\uFF5D\uFF63";
  return kClosing.find(code) != kClosing.npos;
}

// What a stop may directly precede and still end the sentence: "done.[5] Next", "ok.(See there)",
// "said.* A note", "well played.@team".
bool is_opening(char32_t code) {
  constexpr std::u32string_view kOpening = U"([{\"\u201C\u2018\u00AB*@";
  return kOpening.find(code) != kOpening.npos;
}

char to_lower(char byte) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + ('a' - 'A')) : byte;
}

// An ASCII word in small letters; empty for one that is longer than any list has.
class LowerWord {
 public:
  explicit LowerWord(std::string_view word) {
    if (word.size() <= letters_.size()) {
      std::ranges::transform(word, letters_.begin(), to_lower);
      size_ = word.size();
    }
  }
  std::string_view text() const { return {letters_.data(), size_}; }

 private:
  std::array<char, kLongestWord> letters_{};
  std::size_t size_ = 0;
};

class Splitter {
 public:
  Splitter(std::string_view text, bool keep_newlines, std::vector<std::string_view>& sentences)
      : text_(text), keep_newlines_(keep_newlines), sentences_(sentences) {}

  void run() {
    std::size_t at = 0;
    while (true) {
      while (at < text_.size() && !kStopBytes[static_cast<unsigned char>(text_[at])]) {
        ++at;
      }
      if (at == text_.size()) {
        break;
      }
      const Utf8Char c = utf8_at(text_, at);
      const std::size_t after = at + static_cast<std::size_t>(c.length);
      const Stop kind = stop_kind(c.code);
      at = kind == Stop::none ? after : pass_stop(kind, at, after);
    }
    add_last();
  }

 private:
  CharClass class_at(std::size_t at) const { return char_class(utf8_at(text_, at).code); }
  bool is_space(std::size_t at) const { return class_at(at) == CharClass::white_space; }

  std::size_t skip_space(std::size_t at) const {
    while (at < text_.size() && is_space(at)) {
      at += static_cast<std::size_t>(utf8_at(text_, at).length);
    }
    return at;
  }

  std::size_t skip_closing(std::size_t at) const {
    while (at < text_.size()) {
      const Utf8Char c = utf8_at(text_, at);
      if (!is_closing(c.code)) {
        break;
      }
      at += static_cast<std::size_t>(c.length);
    }
    return at;
  }

  // The stop is text_[at, after). Ends the sentence when it should; returns where to go on.
  std::size_t pass_stop(Stop kind, std::size_t at, std::size_t after) {
    const std::size_t closed = skip_closing(after);
    if (closed == text_.size()) {
      return closed;
    }
    const Utf8Char following = utf8_at(text_, closed);
    const bool spaced = is_space(closed);
    if (kind == Stop::wide) {
      return stop_kind(following.code) == Stop::none ? end_sentence(closed) : closed;
    }
    if (spaced) {
      const std::size_t next = skip_space(closed);
      const bool ends = next < text_.size() && (kind == Stop::mark || period_ends(at, next));
      return ends ? end_sentence(closing_alone(closed, next)) : next;
    }
    const bool opens = is_opening(utf8_at(text_, after).code);
    if (opens && (kind == Stop::mark || period_ends(at, after))) {
      return end_sentence(after);
    }
    return after;
  }

  // In text whose words and marks are spaced apart, a closing mark after the stop stands alone at
  // `next`: the sentence then ends after it instead of at `closed`.
  std::size_t closing_alone(std::size_t closed, std::size_t next) const {
    const std::size_t end = skip_closing(next);
    return end > next && (end == text_.size() || is_space(end)) ? end : closed;
  }

  // Whether the full stop at text_[at] ends a sentence, when the next one would begin at `next`.
  bool period_ends(std::size_t at, std::size_t next) const {
    const char32_t first = utf8_at(text_, next).code;
    if (std::u32string_view(U",;:.!?").find(first) != std::u32string_view::npos ||
        char_class(first) == CharClass::lowercase) {
      return false;
    }
    const std::string_view word = word_before(at);
    return !may_go_on_after(word, at) || is_starter_at(next) ||
           (is_one_letter(word) && is_quote(first));
  }

  // Whether the sentence may go on after this word and its full stop.
  bool may_go_on_after(std::string_view word, std::size_t at) const {
    if (word.empty()) {
      return at > 0 && text_[at - 1] == '.';  // an ellipsis
    }
    if (is_one_letter(word) || is_dotted(word)) {
      return true;
    }
    const LowerWord lower(word.substr(word.rfind('-') + 1));  // "ex-Sen."; npos + 1 is 0
    return is_leading_abbreviation(lower.text());
  }

  static bool is_one_letter(std::string_view word) {
    return !word.empty() && utf8_at(word, 0).length == static_cast<int>(word.size()) &&
           kLetter.contains(char_class(utf8_at(word, 0).code));
  }

  // Letters and full stops in turn: "p.m", "U.S.A", and "Ph.D" by list.
  static bool is_dotted(std::string_view word) {
    for (std::size_t i = 0; i < word.size(); ++i) {
      const bool letter = to_lower(word[i]) >= 'a' && to_lower(word[i]) <= 'z';
      if (i % 2 == 0 ? !letter : word[i] != '.') {
        return false;
      }
    }
    return word.size() % 2 == 1 && word.size() > 1;
  }

  // The word that ends before text_[end], without opening punctuation, at most kLongestWord bytes
  // of it. Empty when a full stop, a space or other punctuation is there.
  std::string_view word_before(std::size_t end) const {
    std::size_t begin = end;
    while (begin > 0 && end - begin <= kLongestWord && is_word_byte(text_[begin - 1])) {
      --begin;
    }
    while (begin < end && (text_[begin] == '.' || is_tail_byte(text_[begin]))) {
      ++begin;
    }
    std::string_view word = text_.substr(begin, end - begin);
    return word.ends_with('.') ? std::string_view() : word;
  }

  static bool is_tail_byte(char byte) { return (byte & '\xC0') == '\x80'; }

  static bool is_word_byte(char byte) {
    return (byte & '\x80') != 0 || byte == '.' || byte == '-' || byte == '\'' || byte == '&' ||
           (byte >= '0' && byte <= '9') || (to_lower(byte) >= 'a' && to_lower(byte) <= 'z');
  }

  bool is_starter_at(std::size_t begin) const {
    if (text_[begin] < 'A' || text_[begin] > 'Z') {
      return false;
    }
    std::size_t end = begin;
    while (end < text_.size() && end - begin <= kLongestWord && to_lower(text_[end]) >= 'a' &&
           to_lower(text_[end]) <= 'z') {
      ++end;
    }
    return is_sentence_starter(LowerWord(text_.substr(begin, end - begin)).text());
  }

  std::size_t end_sentence(std::size_t end) {
    const std::size_t next = skip_space(end);
    sentences_.push_back(text_.substr(begin_, (keep_newlines_ ? next : end) - begin_));
    begin_ = next;
    return next;
  }

  void add_last() {
    std::size_t end = text_.size();
    while (end > begin_) {
      std::size_t last = end - 1;
      while (last > begin_ && is_tail_byte(text_[last])) {
        --last;
      }
      if (!is_space(last)) {
        break;
      }
      end = last;
    }
    if (end > begin_) {
      sentences_.push_back(text_.substr(begin_, end - begin_));
    }
  }

  std::string_view text_;
  bool keep_newlines_;
  std::vector<std::string_view>& sentences_;
  std::size_t begin_ = 0;  // of the sentence at hand
};

}  // namespace

void split_sentences(std::string_view text, bool keep_newlines,
                     std::vector<std::string_view>& sentences) {
  Splitter(text, keep_newlines, sentences).run();
}

}  // namespace bloomery
