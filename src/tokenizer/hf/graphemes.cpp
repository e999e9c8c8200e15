#include "tokenizer/hf/graphemes.h"

#include "tokenizer/unicode/char_bits.h"
#include "tokenizer/unicode/properties.h"
#include "tokenizer/utf8.h"

namespace bloomery::hf {
namespace {

constexpr char32_t kJoiner = 0x200D;

struct Classes {
  CharBits controls{"grapheme controls"}, extends{"grapheme extends"},
      prepends{"grapheme prepends"}, consonants{"conjunct consonants"}, linkers{"conjunct linkers"},
      pictographs{"hf pictographs"};

  static const Classes& get() {
    static const Classes classes;
    return classes;
  }
};

// What has been seen since the last character that stands by itself.
struct Context {
  char32_t last = 0;
  bool after_pictograph = false;  // a pictograph and only extending characters since
  bool after_consonant = false;   // a consonant and only extending characters since
  bool linked = false;            // one of those was a linker

  void take(const Classes& classes, char32_t code) {
    last = code;
    if (classes.extends.contains(code)) {
      linked |= classes.linkers.contains(code);
      return;
    }
    after_pictograph = classes.pictographs.contains(code);
    after_consonant = classes.consonants.contains(code);
    linked = false;
  }

  bool joins(const Classes& classes, char32_t next) const {
    if (last == U'\r' && next == U'\n') return true;
    const auto is_control = [&](char32_t c) { return c == 0 || classes.controls.contains(c); };
    if (is_control(last) || is_control(next)) return false;
    return classes.extends.contains(next) || classes.prepends.contains(last) ||
           (after_consonant && linked && classes.consonants.contains(next)) ||
           (after_pictograph && last == kJoiner && classes.pictographs.contains(next));
  }
};

}  // namespace

std::size_t grapheme_end(std::string_view text, std::size_t at) {
  const Classes& classes = Classes::get();
  Context context;
  Utf8Char next = utf8_at(text, at);
  do {
    context.take(classes, next.code);
    at += static_cast<std::size_t>(next.length);
    if (at == text.size()) break;
    next = utf8_at(text, at);
  } while (context.joins(classes, next.code));
  return at;
}

}  // namespace bloomery::hf
