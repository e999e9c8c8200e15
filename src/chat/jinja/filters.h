// The filters of templates: x | name(arguments).
#pragma once

#include <functional>
#include <map>
#include <string>

#include "chat/jinja/arguments.h"
#include "chat/jinja/interpreter.h"

namespace bloomery::jinja {

using FilterFunction = Value (*)(Interpreter&, const Value&, ArgumentReader&);
using Filters = std::map<std::string, FilterFunction, std::less<>>;

const Filters& text_filters();
const Filters& list_filters();
const Filters& number_filters();

// Filters whose arguments belong to another filter or test: map, select, reject, selectattr,
// rejectattr. Nothing where `name` is none of them.
std::optional<Value> apply_to_items(Interpreter& interpreter, const std::string& name,
                                    const Value& input, const Arguments& arguments);
// "a.b.0" of a value, step by step.
Value follow(Interpreter& interpreter, const Value& value, const Value& path);

}  // namespace bloomery::jinja
