#include "text/filter/mojibake.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "text/filter/altered_utf8.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

// From characters back to the bytes of an encoding.
class ByteMap {
 public:
  explicit ByteMap(const SingleByteEncoding& encoding) : sloppy_(encoding.sloppy) {
    for (unsigned i = 0; i < 128; ++i) {
      bytes_.emplace_back(encoding.codes[i], static_cast<char>(0x80 + i));
    }
    if (sloppy_) bytes_.emplace_back(kReplacementCharacter, '\x1A');
    std::ranges::sort(bytes_);
  }

  // None when the text has a character that the encoding has not.
  std::optional<std::string> encode(std::u32string_view text) const {
    std::string bytes;
    for (const char32_t code : text) {
      if (code < 0x80 && !(sloppy_ && code == 0x1A)) {
        bytes += static_cast<char>(code);
        continue;
      }
      const auto found = std::ranges::lower_bound(bytes_, code, {}, &Entry::first);
      if (found == bytes_.end() || found->first != code) return std::nullopt;
      bytes += found->second;
    }
    return bytes;
  }

 private:
  using Entry = std::pair<char32_t, char>;
  const bool sloppy_;
  std::vector<Entry> bytes_;
};

const std::vector<ByteMap>& byte_maps() {
  static const std::vector<ByteMap> maps(std::begin(kEncodings), std::end(kEncodings));
  return maps;
}

// The text that was read in one encoding as a whole; none: it was not.
std::optional<std::u32string> undo_whole(std::u32string_view text) {
  for (std::size_t i = 0; i < byte_maps().size(); ++i) {
    const SingleByteEncoding& encoding = kEncodings[i];
    std::optional<std::string> bytes = byte_maps()[i].encode(text);
    if (!bytes) continue;
    // In MacRoman an en dash in front of a space looks like a lost byte.
    if (encoding.name != "macroman") restore_byte_a0(*bytes);
    if (encoding.sloppy) replace_lossy_sequences(*bytes);
    decode_variants(*bytes);
    if (is_utf8(*bytes)) return decode_utf8(*bytes);
  }
  return std::nullopt;
}

// The end of the sequences like UTF-8 at `at`; `at` when there are none.
std::size_t end_of_sequences(std::u32string_view text, std::size_t at) {
  const auto continues = [&](std::size_t begin, std::size_t count) {
    if (text.size() - begin <= count) return false;
    return std::ranges::all_of(text.substr(begin + 1, count),
                               [](char32_t c) { return (kinds_of(c) & kContinuation) != 0; });
  };
  while (at < text.size()) {
    const std::uint32_t kinds = kinds_of(text[at]);
    if ((kinds & kFirstOf2) != 0 && continues(at, 1)) {
      at += 2;
    } else if ((kinds & kFirstOf3) != 0 && continues(at, 2)) {
      at += 3;
    } else if ((kinds & kFirstOf4) != 0 && continues(at, 3)) {
      at += 4;
    } else {
      break;
    }
  }
  return at;
}

// Broken parts of a text that is not broken as a whole.
std::u32string undo_parts(const std::u32string& text) {
  std::u32string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool inside = at > 0 && (kinds_of(text[at - 1]) & kContinuationStrict) != 0;
    const std::size_t end = inside || text[at] < 0x80 ? at : end_of_sequences(text, at);
    if (end == at) {
      out += text[at++];
      continue;
    }
    std::u32string part = text.substr(at, end - at);
    const bool broken = part.size() < text.size() && is_bad(part);
    out += broken ? fix_encoding(std::move(part)) : part;
    at = end;
  }
  return out;
}

bool is_control(char32_t code) { return code >= 0x80 && code <= 0x9F; }

std::u32string fix_once(const std::u32string& text) {
  const bool ascii = std::ranges::all_of(text, [](char32_t code) { return code < 0x80; });
  if (ascii || !is_bad(text)) return text;
  if (std::optional<std::u32string> whole = undo_whole(text)) return *whole;
  if (std::u32string parts = undo_parts(text); parts != text) return parts;
  std::u32string out = text;
  for (char32_t& code : out) code = is_control(code) ? windows_1252(code) : code;
  return out;
}

}  // namespace

char32_t windows_1252(char32_t control) {
  constexpr std::size_t kWindows1252 = 1;  // of kEncodings
  return kEncodings[kWindows1252].codes[control - 0x80];
}

std::u32string fix_encoding(std::u32string text) {
  while (true) {
    std::u32string next = fix_once(text);
    if (next == text) return text;
    text = std::move(next);
  }
}

std::u32string decode_utf8(std::string_view text) {
  std::u32string codes;
  codes.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char next = utf8_at(text, at);
    codes += next.code;
    at += static_cast<std::size_t>(next.length);
  }
  return codes;
}

std::string encode_utf8(std::u32string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (const char32_t code : text) append_utf8(bytes, code);
  return bytes;
}

}  // namespace bloomery
