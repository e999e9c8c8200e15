// The split patterns as hand-written scanners. Each has
//   static std::size_t next(std::string_view text, std::size_t at)
// which gives the end of the piece that starts at `at`, as the regular expression above it would
// match there. Every pattern matches any character, so that pieces follow without gaps; no scanner
// looks at a character more than a fixed number of times.
#pragma once

#include "tokenizer/bpe/split_pattern.h"
#include "tokenizer/unicode/runs.h"

namespace bloomery {
namespace scan {

inline bool is_newline(char c) { return c == '\n' || c == '\r'; }

inline char lower_ascii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

// The length of 's 't 're 've 'm 'll 'd at text[at], which must be the apostrophe; 0 if none is
// there. The case-insensitive form also knows U+017F, the long s.
template <bool kAnyCase>
std::size_t contraction(std::string_view text, std::size_t at) {
  const auto letter = [&](std::size_t i) {
    if (at + i >= text.size()) return '\0';
    return kAnyCase ? lower_ascii(text[at + i]) : text[at + i];
  };
  switch (letter(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 2;
    case 'r':
    case 'v':
      return letter(2) == 'e' ? 3 : 0;
    case 'l':
      return letter(2) == 'l' ? 3 : 0;
    case '\xC5':
      return kAnyCase && letter(2) == '\xBF' ? 3 : 0;
    default:
      return 0;
  }
}

struct SpaceRun {
  std::size_t end;          // of the white space
  std::size_t last;         // the start of its last character
  std::size_t newline_end;  // after its last \r or \n; 0 when there is none
};

inline SpaceRun space_run(std::string_view text, std::size_t at) {
  SpaceRun run{at, at, 0};
  while (run.end < text.size()) {
    const ClassAt next = class_at(text, run.end);
    if (next.kind != CharClass::white_space) break;
    run.last = run.end;
    run.end += static_cast<std::size_t>(next.length);
    if (is_newline(text[run.last])) run.newline_end = run.end;
  }
  return run;
}

// \s+(?!\S)|\s+ : the last character of white space is left to the word that follows.
inline std::size_t spaces_end(const SpaceRun& run, std::string_view text, std::size_t at) {
  return run.end == text.size() || run.last == at ? run.end : run.last;
}

// \p{N}{1,n}, the first of them already seen and ending at `at`.
template <int kMost>
std::size_t digits_end(std::string_view text, std::size_t at) {
  for (int count = 1; count < kMost && at < text.size(); ++count) {
    const ClassAt next = class_at(text, at);
    if (!kNumber.contains(next.kind)) break;
    at += static_cast<std::size_t>(next.length);
  }
  return at;
}

}  // namespace scan

struct WholeTextScanner {
  static std::size_t next(std::string_view text, std::size_t) { return text.size(); }
};

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
struct Gpt2Scanner {
  static std::size_t next(std::string_view text, std::size_t at) {
    if (text[at] == '\'') {
      const std::size_t length = scan::contraction<false>(text, at);
      if (length > 0) return at + length;
    }
    const std::size_t start = at + (text[at] == ' ' && at + 1 < text.size() ? 1 : 0);
    const ClassAt first = class_at(text, start);
    const std::size_t after = start + static_cast<std::size_t>(first.length);
    if (kLetter.contains(first.kind)) return word_end(text, after, kLetter);
    if (kNumber.contains(first.kind)) return run_end(text, after, kNumber);
    if (first.kind != CharClass::white_space) {
      return run_end(text, after, ~(kLetter | kNumber | kWhiteSpace));
    }
    return scan::spaces_end(scan::space_run(text, at), text, at);
  }
};

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?W+|\p{N}{1,n}| ?[^\sW\p{N}]+[\r\n]*
//   |\s*[\r\n]+|\s+(?!\S)|\s+
// where W is the class of letters in words. With kWholeTail white space at the end of the text is
// one piece even if it has newlines (\s+$ before \s*[\r\n]+).
template <int kMostDigits, bool kWholeTail, bool kMarksInWords>
struct Cl100kScanner {
  static constexpr CharSet kWord = kMarksInWords ? kLetter | kMark : kLetter;
  static constexpr CharSet kRest = ~(kWord | kNumber | kWhiteSpace);

  static std::size_t next(std::string_view text, std::size_t at) {
    const char byte = text[at];
    if (byte == '\'') {
      const std::size_t length = scan::contraction<true>(text, at);
      if (length > 0) return at + length;
    }
    const ClassAt first = class_at(text, at);
    const std::size_t second = at + static_cast<std::size_t>(first.length);
    if (kWord.contains(first.kind)) return word_end(text, second, kWord);
    if (kNumber.contains(first.kind)) return scan::digits_end<kMostDigits>(text, second);
    if (second < text.size()) {
      const ClassAt next = class_at(text, second);
      const std::size_t third = second + static_cast<std::size_t>(next.length);
      if (kWord.contains(next.kind) && !scan::is_newline(byte)) return word_end(text, third, kWord);
      if (byte == ' ' && kRest.contains(next.kind)) return rest_end(text, third);
    }
    if (kRest.contains(first.kind)) return rest_end(text, second);
    const scan::SpaceRun run = scan::space_run(text, at);
    if (run.newline_end > 0 && !(kWholeTail && run.end == text.size())) return run.newline_end;
    return scan::spaces_end(run, text, at);
  }

 private:
  static std::size_t rest_end(std::string_view text, std::size_t at) {
    at = run_end(text, at, kRest);
    while (at < text.size() && scan::is_newline(text[at])) ++at;
    return at;
  }
};

// [^\r\n\p{L}\p{N}]?U*L+C?|[^\r\n\p{L}\p{N}]?U+L*C?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*
//   |\s*[\r\n]+|\s+(?!\S)|\s+
// with U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], L = [\p{Ll}\p{Lm}\p{Lo}\p{M}] and C the contractions.
struct O200kScanner {
  static constexpr CharSet kBoth =
      CharSet(CharClass::modifier_letter, CharClass::other_letter, CharClass::mark);
  static constexpr CharSet kUpper = kBoth | CharSet(CharClass::uppercase, CharClass::titlecase);
  static constexpr CharSet kLower = kBoth | CharSet(CharClass::lowercase);
  static constexpr CharSet kRest = ~(kLetter | kNumber | kWhiteSpace);

  static std::size_t next(std::string_view text, std::size_t at) {
    const char byte = text[at];
    const ClassAt first = class_at(text, at);
    const std::size_t second = at + static_cast<std::size_t>(first.length);
    if (kNumber.contains(first.kind)) return scan::digits_end<3>(text, second);
    if (kLetter.contains(first.kind)) return with_contraction(text, word(text, at).end);
    if (!scan::is_newline(byte)) {
      const Word word_after = word(text, second);
      if (word_after.end > second) {
        // A mark before nothing but capitals is a word of its own: U*L+ goes before U+L*.
        const bool alone = first.kind == CharClass::mark && word_after.only_capitals;
        return with_contraction(text, alone ? second : word_after.end);
      }
      if (first.kind == CharClass::mark) return with_contraction(text, second);
    }
    if (kRest.contains(first.kind)) return rest_end(text, second);
    if (byte == ' ' && second < text.size() && kRest.contains(class_at(text, second).kind)) {
      return rest_end(text, second);
    }
    const scan::SpaceRun run = scan::space_run(text, at);
    return run.newline_end > 0 ? run.newline_end : scan::spaces_end(run, text, at);
  }

 private:
  struct Word {
    std::size_t end;
    bool only_capitals;  // U+ that L+ could not end
  };

  // U*L+, or else U+. L+ after all of U* needs a lowercase letter there; otherwise U* gives back
  // down to the last character that both classes have.
  static Word word(std::string_view text, std::size_t at) {
    std::size_t end = at, both_end = at;
    while (end < text.size()) {
      const ClassAt next = class_at(text, end);
      if (!kUpper.contains(next.kind)) {
        if (next.kind != CharClass::lowercase) break;
        return {lower_end(text, end + static_cast<std::size_t>(next.length)), false};
      }
      end += static_cast<std::size_t>(next.length);
      if (kBoth.contains(next.kind)) both_end = end;
    }
    return both_end > at ? Word{both_end, false} : Word{end, true};
  }

  static std::size_t lower_end(std::string_view text, std::size_t at) {
    for (;;) {
      while (at < text.size() && text[at] >= 'a' && text[at] <= 'z') ++at;
      if (at == text.size() || is_ascii_at(text, at)) return at;
      const ClassAt next = class_at(text, at);
      if (!kLower.contains(next.kind)) return at;
      at += static_cast<std::size_t>(next.length);
    }
  }

  static std::size_t with_contraction(std::string_view text, std::size_t end) {
    return end < text.size() && text[end] == '\'' ? end + scan::contraction<true>(text, end) : end;
  }

  static std::size_t rest_end(std::string_view text, std::size_t at) {
    at = run_end(text, at, kRest);
    while (at < text.size() && (scan::is_newline(text[at]) || text[at] == '/')) ++at;
    return at;
  }
};

// Calls visit(scanner) with the scanner of the pattern, so that a loop over pieces is compiled with
// the scanner inside.
template <class Visit>
decltype(auto) with_scanner(SplitPattern pattern, Visit&& visit) {
  switch (pattern) {
    case SplitPattern::gpt2:
      return visit(Gpt2Scanner{});
    case SplitPattern::cl100k:
      return visit(Cl100kScanner<3, true, false>{});
    case SplitPattern::llama3:
      return visit(Cl100kScanner<3, false, false>{});
    case SplitPattern::qwen2:
      return visit(Cl100kScanner<1, false, false>{});
    case SplitPattern::qwen3_5:
      return visit(Cl100kScanner<1, false, true>{});
    case SplitPattern::o200k:
      return visit(O200kScanner{});
    case SplitPattern::none:
      break;
  }
  return visit(WholeTextScanner{});
}

}  // namespace bloomery
