#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "chat/jinja/print.h"
#include "tokenizer/utf8.h"

namespace bloomery::jinja {
namespace {

class JsonPrinter {
 public:
  JsonPrinter(Heap& heap, const JsonStyle& style) : heap_(heap), style_(style) {}

  void print(const Value& value, int depth) {
    check(depth < kMaxNesting, "a value is nested more than ", kMaxNesting, " deep");
    heap_.step();
    switch (value.kind()) {
      case Kind::none:
      case Kind::boolean:
      case Kind::integer:
      case Kind::real:
        return add(scalar(value));
      case Kind::text:
        return print_text(value.text());
      case Kind::dict:
        return print_dict(value.dict(), depth);
      case Kind::list:
        if (value.list().form == ListForm::list || value.list().form == ListForm::tuple) {
          return print_list(value.list(), depth);
        }
        break;
      default:
        break;
    }
    throw Error(concat("tojson: ", value.what(), " has no form in JSON"));
  }
  Text take() { return std::move(text_); }

 private:
  void add(std::string_view bytes, char mark = 0) {
    heap_.charge(bytes.size());
    text_.append(bytes, mark);
  }

  static std::string scalar(const Value& value) {
    if (value.is(Kind::none)) return "null";
    if (value.is(Kind::boolean)) return value.boolean() ? "true" : "false";
    if (value.is(Kind::integer)) return std::to_string(value.whole());
    const double number = value.number();
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
    return real_text(number);
  }

  void new_line(int depth) {
    if (!style_.indent) return;
    add("\n");
    for (int i = 0; i < depth; ++i) add(*style_.indent);
  }

  void print_list(const List& list, int depth) {
    if (list.items.empty()) return add("[]");
    add("[");
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i != 0) add(style_.item_separator);
      new_line(depth + 1);
      print(list.items[i], depth + 1);
    }
    new_line(depth);
    add("]");
  }

  void print_dict(const Dict& dict, int depth) {
    if (dict.size() == 0) return add("{}");
    std::vector<Dict::Item> items = dict.items();
    if (style_.sort_keys) {
      std::stable_sort(items.begin(), items.end(),
                       [](const auto& a, const auto& b) { return less(a.first, b.first); });
    }
    add("{");
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i != 0) add(style_.item_separator);
      new_line(depth + 1);
      const Value& key = items[i].first;
      print_text(key.is(Kind::text) ? key.text() : Text(scalar(key)));
      add(style_.key_separator);
      print(items[i].second, depth + 1);
    }
    new_line(depth);
    add("}");
  }

  void print_text(const Text& text) {
    const std::string& bytes = text.bytes();
    add("\"");
    for (std::size_t i = 0; i < bytes.size();) {
      const Utf8Char next = utf8_at(bytes, i);
      add(escaped(next.code), text.mark(i));
      i += static_cast<std::size_t>(next.length);
    }
    add("\"");
  }

  static std::string unit(char32_t code) {
    std::string text = "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) text += "0123456789abcdef"[code >> shift & 15];
    return text;
  }

  std::string escaped(char32_t code) const {
    static constexpr std::string_view kShort = "\"\\\n\r\t\b\f", kLetters = "\"\\nrtbf";
    const std::size_t at =
        code < 0x80 ? kShort.find(static_cast<char>(code)) : std::string_view::npos;
    std::string text;
    if (at != std::string_view::npos) {
      text = {'\\', kLetters[at]};
    } else if (code < 0x20 ||
               (style_.ensure_ascii && code >= 0x7F && code < 0x10000 && code != 0x7F)) {
      text = unit(code);
    } else if (style_.ensure_ascii && code >= 0x10000) {
      text = unit(0xD800 + ((code - 0x10000) >> 10)) + unit(0xDC00 + (code & 0x3FF));
    } else {
      append_utf8(text, code);
    }
    return text;
  }

  Heap& heap_;
  const JsonStyle& style_;
  Text text_;
};

}  // namespace

Text to_json(Heap& heap, const Value& value, const JsonStyle& style) {
  JsonPrinter printer(heap, style);
  printer.print(value, 0);
  return printer.take();
}

Value from_json(Heap& heap, const nlohmann::ordered_json& json, char mark, int depth) {
  check(depth < kMaxNesting, "a value is nested more than ", kMaxNesting, " deep");
  heap.step();
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > INT64_MAX) return json.get<double>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) {
    heap.charge(json.get_ref<const std::string&>().size());
    return Text(json.get_ref<const std::string&>(), mark);
  }
  if (json.is_array()) {
    List* const list = heap.list();
    for (const auto& item : json) list->items.push_back(from_json(heap, item, mark, depth + 1));
    return list;
  }
  if (json.is_object()) {
    Dict* const dict = heap.dict();
    for (const auto& item : json.items()) {
      dict->set(Text(item.key(), mark), from_json(heap, item.value(), mark, depth + 1));
    }
    return dict;
  }
  return Value::none();
}

}  // namespace bloomery::jinja
