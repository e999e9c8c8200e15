#include "chat/jinja/objects.h"

namespace bloomery::jinja {

Value Loop::attribute(Interpreter& interpreter, std::string_view name) {
  const auto round = static_cast<std::int64_t>(round_),
             count = static_cast<std::int64_t>(items_.size());
  const std::pair<std::string_view, std::int64_t> numbers[] = {
      {"index", round + 1},        {"index0", round},
      {"revindex", count - round}, {"revindex0", count - round - 1},
      {"length", count},           {"depth", level_ + 1},
      {"depth0", level_}};
  for (const auto& [known, value] : numbers) {
    if (name == known) return value;
  }
  if (name == "first") return round == 0;
  if (name == "last") return round + 1 == count;
  if (name == "previtem")
    return round == 0 ? Value::undefined("loop.previtem") : items_[round_ - 1];
  if (name == "nextitem")
    return round + 1 == count ? Value::undefined("loop.nextitem") : items_[round_ + 1];
  if (name == "cycle") {
    return interpreter.heap().object<Function>(
        "cycle", [this](Interpreter&, const Arguments& arguments) {
          check(!arguments.positional.empty(), "loop.cycle needs values");
          return arguments.positional[round_ % arguments.positional.size()];
        });
  }
  if (name == "changed") {
    return interpreter.heap().object<Function>(
        "changed", [this](Interpreter&, const Arguments& arguments) -> Value {
          bool same = round_ > 0 && last_changed_.size() == arguments.positional.size();
          for (std::size_t i = 0; same && i < last_changed_.size(); ++i) {
            same = equal(last_changed_[i], arguments.positional[i]);
          }
          last_changed_ = arguments.positional;
          return !same;
        });
  }
  return {};
}

Value Loop::call(Interpreter& interpreter, const Arguments& arguments) {
  check(statement_.recursive, "loop(...) is for loops that are recursive");
  check(arguments.positional.size() == 1, "loop(...) takes the items to go through");
  return interpreter.run_loop(statement_, arguments.positional[0], around_, level_ + 1);
}

}  // namespace bloomery::jinja
