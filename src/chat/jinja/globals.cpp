#include <array>
#include <ctime>

#include "chat/jinja/arguments.h"
#include "chat/jinja/objects.h"
#include "chat/jinja/print.h"

namespace bloomery::jinja {
namespace {

Value range(Interpreter& interpreter, const Arguments& arguments) {
  constexpr std::int64_t kMost = 100'000;  // Jinja's own limit in its sandbox
  ArgumentReader reader(arguments, "range");
  std::int64_t start = reader.whole("start", 0), stop = reader.whole("stop", 0);
  if (arguments.positional.size() == 1) stop = std::exchange(start, 0);
  const std::int64_t step = reader.whole("step", 1);
  reader.finish();
  check(!arguments.positional.empty(), "range needs an end");
  check(step != 0, "range: step 0");
  List* const list = interpreter.heap().list();
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    check(static_cast<std::int64_t>(list->items.size()) < kMost, "range: more than ", kMost,
          " numbers");
    list->items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  interpreter.heap().charge(sizeof(Value), list->items.size());
  return list;
}

// The named arguments, after the items of a mapping.
Dict* make_dict(Interpreter& interpreter, const Arguments& arguments, const char* name) {
  Dict* const dict = interpreter.heap().dict();
  check(arguments.positional.size() <= 1, name, " takes one mapping at most");
  for (const Value& given : arguments.positional) {
    if (given.is(Kind::dict)) {
      *dict = given.dict();
      continue;
    }
    for (const Value& pair : interpreter.items(given)) {
      const std::vector<Value> both = interpreter.items(pair);
      check(both.size() == 2, name, ": an item is no pair");
      dict->set(both[0], both[1]);
    }
  }
  for (const auto& [key, value] : arguments.named) dict->set(Text(key), value);
  return dict;
}

Value make_namespace(Interpreter& interpreter, const Arguments& arguments) {
  auto* const names = interpreter.heap().object<Namespace>();
  for (const auto& [key, value] : make_dict(interpreter, arguments, "namespace")->items()) {
    check(key.is(Kind::text), "namespace: a name is ", key.what());
    names->values[key.text().bytes()] = value;
  }
  return names;
}

Value raise_exception(Interpreter& interpreter, const Arguments& arguments) {
  ArgumentReader reader(arguments, "raise_exception");
  throw Error(concat("the template refuses this conversation: ",
                     to_text(interpreter.heap(), reader.need("message")).bytes()));
}

Value strftime_now(Interpreter& interpreter, const Arguments& arguments) {
  ArgumentReader reader(arguments, "strftime_now");
  const Value pattern = reader.need("format");
  reader.finish();
  const std::time_t now = interpreter.now();
  std::tm parts{};
  localtime_r(&now, &parts);
  // A character in front tells an empty result from one that does not fit.
  const std::string format = "." + reader.text(pattern, "format").bytes();
  std::array<char, 1024> buffer;
  const std::size_t size = std::strftime(buffer.data(), buffer.size(), format.c_str(), &parts);
  check(size > 0, "strftime_now: the result is longer than ", buffer.size());
  return Value::text(std::string_view(buffer.data(), size).substr(1));
}

// joiner(", ") is empty at its first call.
Value make_joiner(Interpreter& interpreter, const Arguments& arguments) {
  ArgumentReader reader(arguments, "joiner");
  const Value between = reader.next_or("sep", Value::text(", "));
  return interpreter.heap().object<Function>(
      "joiner", [between, used = std::make_shared<bool>(false)](Interpreter&, const Arguments&) {
        return std::exchange(*used, true) ? between : Value::text("");
      });
}

}  // namespace

void add_globals(Heap& heap, Scope& scope) {
  const auto add = [&](const char* name, Function::Body body) {
    scope.variables[name] = heap.object<Function>(name, std::move(body));
  };
  add("range", range);
  add("dict", [](Interpreter& interpreter, const Arguments& arguments) -> Value {
    return make_dict(interpreter, arguments, "dict");
  });
  add("namespace", make_namespace);
  add("raise_exception", raise_exception);
  add("strftime_now", strftime_now);
  add("joiner", make_joiner);
}

}  // namespace bloomery::jinja
