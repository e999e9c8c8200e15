#include "chat/jinja/print.h"

#include <array>
#include <charconv>
#include <cmath>

#include "tokenizer/unicode/classes.h"
#include "tokenizer/utf8.h"

namespace bloomery::jinja {
namespace {

bool is_printable(char32_t code) {
  if (code == ' ') return true;
  const CharClass kind = char_class(code);
  return kind != CharClass::other && kind != CharClass::white_space;
}

std::string hex(char32_t code, int digits) {
  std::string text(static_cast<std::size_t>(digits), '0');
  for (int i = digits; i-- > 0; code >>= 4)
    text[static_cast<std::size_t>(i)] = "0123456789abcdef"[code & 15];
  return text;
}

class LiteralPrinter {
 public:
  explicit LiteralPrinter(Heap& heap) : heap_(heap) {}

  void print(const Value& value, int depth) {
    check(depth < kMaxNesting, "a value is nested more than ", kMaxNesting, " deep");
    heap_.step();
    switch (value.kind()) {
      case Kind::undefined:
        return add("Undefined");
      case Kind::none:
        return add("None");
      case Kind::boolean:
        return add(value.boolean() ? "True" : "False");
      case Kind::integer:
        return add(std::to_string(value.whole()));
      case Kind::real:
        return add(real_text(value.number()));
      case Kind::text:
        return print_text(value.text());
      case Kind::list:
        return print_list(value.list(), depth);
      case Kind::dict:
        return print_dict(value.dict(), depth);
      case Kind::object:
        return add(value.object().describe());
    }
  }
  Text take() { return std::move(text_); }

 private:
  void add(std::string_view bytes, char mark = 0) {
    heap_.charge(bytes.size());
    text_.append(bytes, mark);
  }

  void print_list(const List& list, int depth) {
    if (list.form == ListForm::generator) return add("<generator object>");
    const bool tuple = list.form == ListForm::tuple;
    add(list.form == ListForm::view ? "dict_items([" : tuple ? "(" : "[");
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i != 0) add(", ");
      print(list.items[i], depth + 1);
    }
    add(list.form == ListForm::view ? "])" : !tuple ? "]" : list.items.size() == 1 ? ",)" : ")");
  }

  void print_dict(const Dict& dict, int depth) {
    add("{");
    bool first = true;
    for (const auto& [key, item] : dict.items()) {
      if (!first) add(", ");
      first = false;
      print(key, depth + 1);
      add(": ");
      print(item, depth + 1);
    }
    add("}");
  }

  void print_text(const Text& text) {
    const std::string& bytes = text.bytes();
    const bool double_quotes =
        bytes.find('\'') != std::string::npos && bytes.find('"') == std::string::npos;
    const char quote = double_quotes ? '"' : '\'';
    add(std::string_view(&quote, 1));
    for (std::size_t i = 0; i < bytes.size();) {
      const Utf8Char next = utf8_at(bytes, i);
      add(escaped(next.code, quote), text.mark(i));
      i += static_cast<std::size_t>(next.length);
    }
    add(std::string_view(&quote, 1));
  }

  static std::string escaped(char32_t code, char quote) {
    switch (code) {
      case '\n':
        return "\\n";
      case '\r':
        return "\\r";
      case '\t':
        return "\\t";
      case '\\':
        return "\\\\";
      default:
        break;
    }
    std::string text;
    if (code == static_cast<char32_t>(quote)) {
      text = {'\\', quote};
    } else if (is_printable(code)) {
      append_utf8(text, code);
    } else if (code < 0x100) {
      text = "\\x" + hex(code, 2);
    } else {
      text = code < 0x10000 ? "\\u" + hex(code, 4) : "\\U" + hex(code, 8);
    }
    return text;
  }

  Heap& heap_;
  Text text_;
};

}  // namespace

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer;
  const auto shortest = [&](std::chars_format format) {
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format).ptr;
    return std::string(buffer.data(), end);
  };
  const std::string scientific = shortest(std::chars_format::scientific);
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  if (exponent < -4 || exponent >= 16) return scientific;
  std::string fixed = shortest(std::chars_format::fixed);
  return fixed.find('.') == std::string::npos ? fixed + ".0" : fixed;
}

Text to_literal(Heap& heap, const Value& value) {
  LiteralPrinter printer(heap);
  printer.print(value, 0);
  return printer.take();
}

Text to_text(Heap& heap, const Value& value) {
  if (value.is(Kind::text)) {
    heap.charge(value.text().size());
    return value.text();
  }
  return value.is(Kind::undefined) ? Text() : to_literal(heap, value);
}

}  // namespace bloomery::jinja
