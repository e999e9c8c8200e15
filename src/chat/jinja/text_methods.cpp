#include <algorithm>
#include <functional>
#include <map>

#include "chat/jinja/arguments.h"
#include "chat/jinja/format.h"
#include "chat/jinja/methods.h"
#include "chat/jinja/text_functions.h"
#include "tokenizer/unicode/classes.h"
#include "tokenizer/utf8.h"

namespace bloomery::jinja {
namespace {

using Method = Value (*)(Interpreter&, const Text&, ArgumentReader&);

template <Text (*kMake)(const Text&)>
Value plain(Interpreter&, const Text& text, ArgumentReader&) {
  return kMake(text);
}

template <bool kLeft, bool kRight>
Value strip_method(Interpreter&, const Text& text, ArgumentReader& arguments) {
  return strip(text, arguments.next_or("chars", Value::none()), kLeft, kRight);
}

template <bool kFromRight>
Value split_method(Interpreter& interpreter, const Text& text, ArgumentReader& arguments) {
  const Value separator = arguments.next_or("sep", Value::none());
  const std::int64_t most = arguments.whole("maxsplit", -1);
  return text_list(interpreter.heap(), split(text, separator, most, kFromRight));
}

Value split_lines_method(Interpreter& interpreter, const Text& text, ArgumentReader& arguments) {
  return text_list(interpreter.heap(), split_lines(text, arguments.flag("keepends", false)));
}

template <bool kFromRight>
Value partition(Interpreter& interpreter, const Text& text, ArgumentReader& arguments) {
  const Value separator = arguments.need("sep");
  std::vector<Text> parts = split(text, separator, 1, kFromRight);
  if (parts.size() == 2) {
    parts.insert(parts.begin() + 1, separator.text());
  } else {
    parts.insert(kFromRight ? parts.begin() : parts.end(), 2, Text());
  }
  return text_list(interpreter.heap(), std::move(parts), ListForm::tuple);
}

template <bool kStart>
Value affix(Interpreter& interpreter, const Text& text, ArgumentReader& arguments) {
  const Value wanted = arguments.need("affix");
  const auto matches = [&](const Value& one) {
    const std::string& part = arguments.text(one, "the text looked for").bytes();
    return kStart ? text.bytes().starts_with(part) : text.bytes().ends_with(part);
  };
  if (!wanted.is(Kind::list)) return matches(wanted);
  const std::vector<Value> all = interpreter.items(wanted);
  return std::any_of(all.begin(), all.end(), matches);
}

template <bool kStart>
Value remove_affix(Interpreter&, const Text& text, ArgumentReader& arguments) {
  const Value wanted = arguments.need("affix");
  const std::string& part = arguments.text(wanted, "the text to remove").bytes();
  if (kStart && text.bytes().starts_with(part)) return text.part(part.size(), text.size());
  if (!kStart && text.bytes().ends_with(part)) return text.part(0, text.size() - part.size());
  return text;
}

Value replace_method(Interpreter& interpreter, const Text& text, ArgumentReader& arguments) {
  const Value old = arguments.need("old"), by = arguments.need("new");
  return replace(interpreter.heap(), text, arguments.text(old, "old"), arguments.text(by, "new"),
                 arguments.whole("count", -1));
}

template <bool kLast, bool kMustBe>
Value find_text(Interpreter&, const Text& text, ArgumentReader& arguments) {
  const Value wanted = arguments.need("sub");
  const std::string& part = arguments.text(wanted, "the text looked for").bytes();
  const std::size_t at = kLast ? text.bytes().rfind(part) : text.bytes().find(part);
  check(!kMustBe || at != std::string::npos, "index: the text is not there");
  if (at == std::string::npos) return std::int64_t{-1};
  return static_cast<std::int64_t>(count_characters(std::string_view(text.bytes()).substr(0, at)));
}

Value count_text(Interpreter&, const Text& text, ArgumentReader& arguments) {
  const Value wanted = arguments.need("sub");
  const std::string& part = arguments.text(wanted, "the text looked for").bytes();
  if (part.empty()) return static_cast<std::int64_t>(count_characters(text.bytes()) + 1);
  std::int64_t count = 0;
  for (std::size_t at = text.bytes().find(part); at != std::string::npos;
       at = text.bytes().find(part, at + part.size()))
    ++count;
  return count;
}

Value join_method(Interpreter& interpreter, const Text& text, ArgumentReader& arguments) {
  const std::vector<Value> items = interpreter.items(arguments.need("iterable"));
  for (const Value& item : items) arguments.text(item, "an item");
  return join(interpreter.heap(), text, items);
}

bool all_characters(const Text& text, const std::function<bool(char32_t)>& holds) {
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Char next = utf8_at(text.bytes(), i);
    if (!holds(next.code)) return false;
    i += static_cast<std::size_t>(next.length);
  }
  return !text.empty();
}

Value is_digit(Interpreter&, const Text& text, ArgumentReader&) {
  return all_characters(text, [](char32_t code) { return char_class(code) == CharClass::decimal; });
}
Value is_alpha(Interpreter&, const Text& text, ArgumentReader&) {
  return all_characters(text, [](char32_t code) { return kLetter.contains(char_class(code)); });
}
Value is_alnum(Interpreter&, const Text& text, ArgumentReader&) {
  return all_characters(
      text, [](char32_t code) { return (kLetter | kNumber).contains(char_class(code)); });
}
Value is_white(Interpreter&, const Text& text, ArgumentReader&) {
  return all_characters(text, is_space);
}
template <CharClass kHas, CharClass kLacks>
Value is_case(Interpreter&, const Text& text, ArgumentReader&) {
  bool any = false;
  return all_characters(text,
                        [&](char32_t code) {
                          any = any || char_class(code) == kHas;
                          return char_class(code) != kLacks;
                        }) &&
         any;
}

const std::map<std::string, Method, std::less<>>& methods() {
  static const std::map<std::string, Method, std::less<>> table = {
      {"upper", plain<upper>},
      {"lower", plain<lower>},
      {"title", plain<title>},
      {"capitalize", plain<capitalize>},
      {"strip", strip_method<true, true>},
      {"lstrip", strip_method<true, false>},
      {"rstrip", strip_method<false, true>},
      {"split", split_method<false>},
      {"rsplit", split_method<true>},
      {"splitlines", split_lines_method},
      {"partition", partition<false>},
      {"rpartition", partition<true>},
      {"startswith", affix<true>},
      {"endswith", affix<false>},
      {"removeprefix", remove_affix<true>},
      {"removesuffix", remove_affix<false>},
      {"replace", replace_method},
      {"find", find_text<false, false>},
      {"rfind", find_text<true, false>},
      {"index", find_text<false, true>},
      {"rindex", find_text<true, true>},
      {"count", count_text},
      {"join", join_method},
      {"isdigit", is_digit},
      {"isdecimal", is_digit},
      {"isalpha", is_alpha},
      {"isalnum", is_alnum},
      {"isspace", is_white},
      {"isupper", is_case<CharClass::uppercase, CharClass::lowercase>},
      {"islower", is_case<CharClass::lowercase, CharClass::uppercase>},
  };
  return table;
}

}  // namespace

Object* find_text_method(Heap& heap, const Value& object, std::string_view name) {
  if (name == "format") {
    return heap.object<Function>(
        "format", [object](Interpreter& interpreter, const Arguments& arguments) {
          return brace_format(interpreter.heap(), object.text(), arguments);
        });
  }
  const auto found = methods().find(name);
  if (found == methods().end()) return nullptr;
  return heap.object<Function>(
      std::string(name), [object, found](Interpreter& interpreter, const Arguments& arguments) {
        interpreter.heap().charge(object.text().size());
        ArgumentReader reader(arguments, found->first);
        Value result = found->second(interpreter, object.text(), reader);
        reader.finish();
        return result;
      });
}

}  // namespace bloomery::jinja
