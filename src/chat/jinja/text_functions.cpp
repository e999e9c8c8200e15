#include "chat/jinja/text_functions.h"

#include <algorithm>
#include <unordered_map>

#include "chat/jinja/print.h"
#include "tokenizer/unicode/classes.h"
#include "tokenizer/unicode/normalize.h"
#include "tokenizer/utf8.h"

namespace bloomery::jinja {
namespace {

// Capitals of characters beyond ASCII: those whose small form they are. Where the capital is
// several characters, as of the German sharp s, there is none here.
const std::unordered_map<char32_t, char32_t>& capitals() {
  static const auto table = [] {
    std::unordered_map<char32_t, char32_t> made;
    for (char32_t code = 0x80; code < 0x1F000; ++code) {
      if (char_class(code) != CharClass::uppercase) continue;
      std::string small;
      append_utf8(small, code);
      lowercase(small);
      const Utf8Char first = utf8_at(small, 0);
      if (static_cast<std::size_t>(first.length) == small.size() && first.code >= 0x80)
        made.try_emplace(first.code, code);
    }
    return made;
  }();
  return table;
}

std::string capital(char32_t code) {
  std::string text;
  if (code < 0x80) {
    text += static_cast<char>(code >= 'a' && code <= 'z' ? code - 32 : code);
  } else {
    const auto found = capitals().find(code);
    append_utf8(text, found == capitals().end() ? code : found->second);
  }
  return text;
}

std::string small(char32_t code) {
  std::string text;
  append_utf8(text, code);
  lowercase(text);
  return text;
}

// make(code, whether the character begins a word) for each character.
template <class Make>
Text each_character(const Text& text, const Make& make) {
  Text result;
  bool begins = true;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Char next = utf8_at(text.bytes(), i);
    result.append(make(next.code, begins), text.mark(i));
    begins = is_space(next.code) ||
             (next.code < 0x80 && std::string_view("-({[<").find(static_cast<char>(next.code)) !=
                                      std::string_view::npos);
    i += static_cast<std::size_t>(next.length);
  }
  return result;
}

// Words between white space, from the left.
std::vector<Bounds> words(std::string_view text) {
  std::vector<Bounds> found;
  bool inside = false;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Char next = utf8_at(text, i);
    if (is_space(next.code)) {
      inside = false;
    } else if (!inside) {
      found.push_back({i, i});
      inside = true;
    }
    i += static_cast<std::size_t>(next.length);
    if (inside) found.back().end = i;
  }
  return found;
}

std::vector<Text> split_at_space(const Text& text, std::int64_t most, bool from_right) {
  std::vector<Bounds> found = words(text.bytes());
  if (most >= 0 && found.size() > static_cast<std::size_t>(most) + 1) {
    const auto cuts = static_cast<std::size_t>(most);
    if (from_right) {
      found[found.size() - cuts - 1].begin = found[0].begin;
      found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(cuts) - 1);
    } else {
      // The rest keeps the white space at its end.
      found[cuts].end = text.size();
      found.resize(cuts + 1);
    }
  }
  std::vector<Text> parts;
  for (const Bounds& bounds : found) parts.push_back(text.part(bounds.begin, bounds.end));
  return parts;
}

}  // namespace

Text upper(const Text& text) {
  return each_character(text, [](char32_t code, bool) { return capital(code); });
}
Text lower(const Text& text) {
  return each_character(text, [](char32_t code, bool) { return small(code); });
}
Text title(const Text& text) {
  return each_character(
      text, [](char32_t code, bool begins) { return begins ? capital(code) : small(code); });
}
Text capitalize(const Text& text) {
  bool first = true;
  return each_character(text, [&](char32_t code, bool) {
    return std::exchange(first, false) ? capital(code) : small(code);
  });
}

Text strip(const Text& text, const Value& characters, bool left, bool right) {
  const bool space = characters.is(Kind::none) || characters.is(Kind::undefined);
  check(space || characters.is(Kind::text), "strip by ", characters.what(), ", no text");
  const Bounds bounds =
      space ? strip_space(text.bytes(), left, right)
            : strip_characters(text.bytes(), characters.text().bytes(), left, right);
  return text.part(bounds.begin, bounds.end);
}

Text replace(Heap& heap, const Text& text, const Text& old, const Text& by, std::int64_t most) {
  heap.charge(text.size());
  const std::string& bytes = text.bytes();
  Text result;
  std::size_t at = 0;
  const auto may = [&] { return most != 0 && (most < 0 || most-- > 0); };
  if (old.empty()) {  // between all characters, and at both ends
    while (may()) {
      heap.charge(by.size());
      result.append(by);
      if (at == bytes.size()) return result;
      const std::size_t end = at + static_cast<std::size_t>(utf8_at(bytes, at).length);
      result.append(text, at, end);
      at = end;
    }
  } else {
    for (std::size_t found = bytes.find(old.bytes()); found != std::string::npos && may();
         found = bytes.find(old.bytes(), at)) {
      heap.charge(by.size());
      result.append(text, at, found);
      result.append(by);
      at = found + old.size();
    }
  }
  result.append(text, at, bytes.size());
  return result;
}

Text escape(Heap& heap, const Text& text) {
  if (text.markup()) return text;
  Text escaped = text;
  for (const auto& [from, to] : std::initializer_list<std::pair<const char*, const char*>>{
           {"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"'", "&#39;"}, {"\"", "&#34;"}}) {
    escaped = replace(heap, escaped, Text(from), Text(to), -1);
  }
  return escaped;
}

std::vector<Text> split_lines(const Text& text, bool keep_ends) {
  const std::string& bytes = text.bytes();
  std::vector<Text> lines;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < bytes.size();) {
    const Utf8Char next = utf8_at(bytes, i);
    const char32_t c = next.code;
    std::size_t end = i + static_cast<std::size_t>(next.length);
    if ((c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029) {
      if (c == '\r' && end < bytes.size() && bytes[end] == '\n') ++end;
      lines.push_back(text.part(begin, keep_ends ? end : i));
      begin = end;
    }
    i = end;
  }
  if (begin < bytes.size()) lines.push_back(text.part(begin, bytes.size()));
  return lines;
}

std::vector<Text> split(const Text& text, const Value& separator, std::int64_t most,
                        bool from_right) {
  if (separator.is(Kind::none)) return split_at_space(text, most, from_right);
  check(separator.is(Kind::text) && !separator.text().empty(), "split at ",
        separator.is(Kind::text) ? "an empty text" : separator.what());
  const std::string &bytes = text.bytes(), &mark = separator.text().bytes();
  std::vector<Text> parts;
  if (from_right) {
    std::size_t end = bytes.size();
    while (most != 0 && end >= mark.size()) {
      const std::size_t found = bytes.rfind(mark, end - mark.size());
      if (found == std::string::npos) break;
      parts.push_back(text.part(found + mark.size(), end));
      end = found;
      --most;
    }
    parts.push_back(text.part(0, end));
    std::reverse(parts.begin(), parts.end());
    return parts;
  }
  std::size_t at = 0;
  for (std::size_t found = bytes.find(mark); found != std::string::npos && most != 0;
       found = bytes.find(mark, at), --most) {
    parts.push_back(text.part(at, found));
    at = found + mark.size();
  }
  parts.push_back(text.part(at, bytes.size()));
  return parts;
}

Text join(Heap& heap, const Text& between, const std::vector<Value>& items) {
  Text text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i != 0) {
      heap.charge(between.size());
      text.append(between);
    }
    text.append(to_text(heap, items[i]));
  }
  heap.charge(text.size());
  return text;
}

Value text_list(Heap& heap, std::vector<Text> texts, ListForm form) {
  std::vector<Value> values;
  for (Text& text : texts) {
    heap.charge(text.size() + sizeof(Text));
    values.emplace_back(std::move(text));
  }
  return heap.list(std::move(values), form);
}

}  // namespace bloomery::jinja
