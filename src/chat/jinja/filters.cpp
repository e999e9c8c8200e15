#include "chat/jinja/filters.h"

#include "chat/jinja/format.h"
#include "chat/jinja/text_functions.h"

namespace bloomery::jinja {
namespace {

// The arguments behind the first `used` ones.
Arguments rest_of(const Arguments& arguments, std::size_t used) {
  Arguments rest{{}, arguments.named};
  for (std::size_t i = used; i < arguments.positional.size(); ++i)
    rest.positional.push_back(arguments.positional[i]);
  return rest;
}

std::string name_argument(const std::string& filter, const Arguments& arguments,
                          std::size_t place) {
  check(place < arguments.positional.size() && arguments.positional[place].is(Kind::text), filter,
        " needs a name");
  return arguments.positional[place].text().bytes();
}

// Of these filters alone none, false and 0 count as empty.
std::vector<Value> items_if_any(Interpreter& interpreter, const Value& input) {
  return input.truth() ? interpreter.items(input) : std::vector<Value>();
}

Value map_items(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  List* const list = interpreter.heap().list({}, ListForm::generator);
  const bool by_filter = !arguments.positional.empty();
  ArgumentReader reader(arguments, "map");
  const Value attribute = by_filter ? Value() : reader.need("attribute");
  const Value otherwise = by_filter ? Value() : reader.next_or("default", Value());
  const std::string name = by_filter ? name_argument("map", arguments, 0) : "";
  const Arguments rest = by_filter ? rest_of(arguments, 1) : Arguments();
  for (const Value& item : items_if_any(interpreter, input)) {
    Value made =
        by_filter ? interpreter.filter(name, item, rest) : follow(interpreter, item, attribute);
    if (made.is(Kind::undefined) && !otherwise.is(Kind::undefined)) made = otherwise;
    list->items.push_back(std::move(made));
  }
  return list;
}

// select and reject by a test of the items, or of an attribute of them; without one by truth.
Value choose(Interpreter& interpreter, const std::string& filter, const Value& input,
             const Arguments& arguments) {
  const bool by_attribute = filter.ends_with("attr"), wanted = filter.starts_with("select");
  const std::size_t used = by_attribute ? 1 : 0;
  check(!by_attribute || !arguments.positional.empty(), filter, " needs the name of an attribute");
  const bool tested = arguments.positional.size() > used;
  const std::string test = tested ? name_argument(filter, arguments, used) : "";
  const Arguments rest = tested ? rest_of(arguments, used + 1) : Arguments();
  List* const list = interpreter.heap().list({}, ListForm::generator);
  for (const Value& item : items_if_any(interpreter, input)) {
    const Value subject = by_attribute ? follow(interpreter, item, arguments.positional[0]) : item;
    const bool holds = tested ? interpreter.test(test, subject, rest) : subject.truth();
    if (holds == wanted) list->items.push_back(item);
  }
  return list;
}

}  // namespace

Value follow(Interpreter& interpreter, const Value& value, const Value& path) {
  if (path.is_whole()) return interpreter.subscript(value, path);
  check(path.is(Kind::text), "an attribute named by ", path.what());
  Value reached = value;
  for (const Text& part : split(path.text(), Value::text("."), -1, false)) {
    const std::string& name = part.bytes();
    const bool number = !name.empty() &&
                        name.find_first_not_of("0123456789") == std::string::npos &&
                        name.size() < 10;
    reached =
        interpreter.subscript(reached, number ? Value(std::int64_t{std::stoi(name)}) : Value(part));
  }
  return reached;
}

std::optional<Value> apply_to_items(Interpreter& interpreter, const std::string& name,
                                    const Value& input, const Arguments& arguments) {
  if (name == "map") return map_items(interpreter, input, arguments);
  if (name == "select" || name == "reject" || name == "selectattr" || name == "rejectattr")
    return choose(interpreter, name, input, arguments);
  if (name == "format") {
    check(input.is(Kind::text), "format of ", input.what());
    return percent_format(interpreter.heap(), input.text(), arguments.positional);
  }
  return std::nullopt;
}

Value Interpreter::filter(const std::string& name, const Value& input, const Arguments& arguments) {
  heap_.step();
  if (std::optional<Value> made = apply_to_items(*this, name, input, arguments)) return *made;
  for (const Filters* filters : {&text_filters(), &list_filters(), &number_filters()}) {
    const auto found = filters->find(name);
    if (found == filters->end()) continue;
    ArgumentReader reader(arguments, name);
    Value made = found->second(*this, input, reader);
    reader.finish();
    return made;
  }
  throw Error(concat("there is no filter ", name));
}

}  // namespace bloomery::jinja
