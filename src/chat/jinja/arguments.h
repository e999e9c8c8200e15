// The arguments of a built-in function, by place or by name.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "chat/jinja/value.h"

namespace bloomery::jinja {

class ArgumentReader {
 public:
  // `function`: for messages.
  ArgumentReader(const Arguments& arguments, std::string_view function)
      : arguments_(arguments), function_(function) {}

  // The next parameter; nothing where it was not given.
  std::optional<Value> next(std::string_view name);
  Value need(std::string_view name);
  Value next_or(std::string_view name, Value otherwise);
  bool flag(std::string_view name, bool otherwise) { return next_or(name, otherwise).truth(); }
  std::int64_t whole(std::string_view name, std::int64_t otherwise);
  const Text& text(const Value& value, std::string_view name) const;
  // An Error where something was given that no parameter took.
  void finish() const;

 private:
  const Arguments& arguments_;
  const std::string_view function_;
  std::size_t place_ = 0;
  std::set<std::string_view> known_;
};

}  // namespace bloomery::jinja
