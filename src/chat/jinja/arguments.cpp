#include "chat/jinja/arguments.h"

namespace bloomery::jinja {

std::optional<Value> ArgumentReader::next(std::string_view name) {
  known_.insert(name);
  const std::size_t place = place_++;
  if (place < arguments_.positional.size()) return arguments_.positional[place];
  for (const auto& [given, value] : arguments_.named) {
    if (given == name) return value;
  }
  return std::nullopt;
}

Value ArgumentReader::need(std::string_view name) {
  const std::optional<Value> value = next(name);
  check(value.has_value(), function_, " needs ", name);
  return *value;
}

Value ArgumentReader::next_or(std::string_view name, Value otherwise) {
  return next(name).value_or(std::move(otherwise));
}

std::int64_t ArgumentReader::whole(std::string_view name, std::int64_t otherwise) {
  const Value value = next_or(name, otherwise);
  check(value.is_whole(), function_, ": ", name, " is ", value.what(), ", no whole number");
  return value.whole();
}

const Text& ArgumentReader::text(const Value& value, std::string_view name) const {
  check(value.is(Kind::text), function_, ": ", name, " is ", value.what(), ", no text");
  return value.text();
}

void ArgumentReader::finish() const {
  check(arguments_.positional.size() <= place_, function_, " takes ", place_, " arguments, not ",
        arguments_.positional.size());
  for (const auto& [name, value] : arguments_.named) {
    check(known_.contains(name), function_, " has no argument ", name);
  }
}

}  // namespace bloomery::jinja
