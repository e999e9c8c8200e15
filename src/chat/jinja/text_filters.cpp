#include <algorithm>

#include "chat/jinja/filters.h"
#include "chat/jinja/format.h"
#include "chat/jinja/print.h"
#include "chat/jinja/text_functions.h"

namespace bloomery::jinja {
namespace {

Text input_text(Interpreter& interpreter, const Value& input) {
  return to_text(interpreter.heap(), input);
}

Value string(Interpreter& interpreter, const Value& input, ArgumentReader&) {
  return input_text(interpreter, input);
}

template <Text (*kMake)(const Text&)>
Value plain(Interpreter& interpreter, const Value& input, ArgumentReader&) {
  return kMake(input_text(interpreter, input));
}

Value trim(Interpreter& interpreter, const Value& input, ArgumentReader& arguments) {
  return strip(input_text(interpreter, input), arguments.next_or("chars", Value::none()));
}

Value replace_filter(Interpreter& interpreter, const Value& input, ArgumentReader& arguments) {
  const Text old = input_text(interpreter, arguments.need("old")),
             by = input_text(interpreter, arguments.need("new"));
  const Value most = arguments.next_or("count", Value::none());
  check(most.is(Kind::none) || most.is_whole(), "replace: count is ", most.what());
  return replace(interpreter.heap(), input_text(interpreter, input), old, by,
                 most.is(Kind::none) ? -1 : most.whole());
}

// A number of spaces, or the text itself.
Text indent_unit(Interpreter& interpreter, const Value& width) {
  if (width.is(Kind::text)) return width.text();
  check(width.is_whole() && width.whole() <= 10'000, "an indent of ", width.what());
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(width.whole(), 0));
  interpreter.heap().charge(count);
  return Text(std::string(count, ' '));
}

Value indent(Interpreter& interpreter, const Value& input, ArgumentReader& arguments) {
  const Text unit = indent_unit(interpreter, arguments.next_or("width", std::int64_t{4}));
  const bool first = arguments.flag("first", false), blank = arguments.flag("blank", false);
  Text text = input_text(interpreter, input);
  text.append("\n");
  const std::vector<Text> lines = split_lines(text);
  Heap& heap = interpreter.heap();
  heap.charge(text.size());
  Text result;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i != 0) result.append("\n");
    if (i == 0 ? first : blank || !lines[i].empty()) {
      heap.charge(unit.size());
      result.append(unit);
    }
    result.append(lines[i]);
  }
  return result;
}

Value to_json_filter(Interpreter& interpreter, const Value& input, ArgumentReader& arguments) {
  JsonStyle style;
  style.ensure_ascii = arguments.flag("ensure_ascii", false);
  const Value width = arguments.next_or("indent", Value::none());
  if (!width.is(Kind::none)) {
    style.indent = indent_unit(interpreter, width).bytes();
    style.item_separator = ",";
  }
  const Value separators = arguments.next_or("separators", Value::none());
  if (!separators.is(Kind::none)) {
    const std::vector<Value> both = interpreter.items(separators);
    check(both.size() == 2, "tojson: separators are two texts");
    style.item_separator = arguments.text(both[0], "a separator").bytes();
    style.key_separator = arguments.text(both[1], "a separator").bytes();
  }
  style.sort_keys = arguments.flag("sort_keys", false);
  return to_json(interpreter.heap(), input, style);
}

Value escape_filter(Interpreter& interpreter, const Value& input, ArgumentReader&) {
  return escape(interpreter.heap(), input_text(interpreter, input)).as_markup();
}

Value safe(Interpreter& interpreter, const Value& input, ArgumentReader&) {
  return input_text(interpreter, input).as_markup();
}

Value word_count(Interpreter& interpreter, const Value& input, ArgumentReader&) {
  return static_cast<std::int64_t>(
      split(input_text(interpreter, input), Value::none(), -1, false).size());
}

}  // namespace

const Filters& text_filters() {
  static const Filters filters = {{"string", string},
                                  {"safe", safe},
                                  {"lower", plain<lower>},
                                  {"upper", plain<upper>},
                                  {"title", plain<title>},
                                  {"capitalize", plain<capitalize>},
                                  {"trim", trim},
                                  {"replace", replace_filter},
                                  {"indent", indent},
                                  {"tojson", to_json_filter},
                                  {"escape", escape_filter},
                                  {"e", escape_filter},
                                  {"wordcount", word_count}};
  return filters;
}

}  // namespace bloomery::jinja
