#include <algorithm>
#include <map>

#include "chat/jinja/arguments.h"
#include "chat/jinja/methods.h"

namespace bloomery::jinja {
namespace {

using Method = Value (*)(Interpreter&, const Value&, ArgumentReader&);
using Methods = std::map<std::string, Method, std::less<>>;

void grow(Interpreter& interpreter, std::size_t count) {
  interpreter.heap().charge(sizeof(Value), count);
}

Value append(Interpreter& interpreter, const Value& list, ArgumentReader& arguments) {
  grow(interpreter, 1);
  list.list().items.push_back(arguments.need("object"));
  return Value::none();
}

Value extend(Interpreter& interpreter, const Value& list, ArgumentReader& arguments) {
  const std::vector<Value> more = interpreter.items(arguments.need("iterable"));
  grow(interpreter, more.size());
  list.list().items.insert(list.list().items.end(), more.begin(), more.end());
  return Value::none();
}

// The place that an index means; negative ones count from the end.
std::ptrdiff_t place(std::int64_t index, std::size_t size) {
  const auto count = static_cast<std::int64_t>(size);
  return std::clamp<std::int64_t>(index < 0 ? index + count : index, 0, count);
}

Value insert(Interpreter& interpreter, const Value& list, ArgumentReader& arguments) {
  auto& items = list.list().items;
  const std::int64_t index = arguments.whole("index", 0);
  grow(interpreter, items.size() + 1);
  items.push_back(arguments.need("object"));
  std::rotate(items.begin() + place(index, items.size() - 1), items.end() - 1, items.end());
  return Value::none();
}

Value pop_item(Interpreter& interpreter, const Value& list, ArgumentReader& arguments) {
  auto& items = list.list().items;
  const std::int64_t index = arguments.whole("index", -1);
  const auto count = static_cast<std::int64_t>(items.size());
  check(index < count && index >= -count, "pop: the list has ", count, " items");
  interpreter.heap().step(count);
  const auto at = items.begin() + place(index, items.size());
  Value item = *at;
  items.erase(at);
  return item;
}

Value index_of(Interpreter& interpreter, const Value& list, ArgumentReader& arguments) {
  const auto& items = list.list().items;
  const Value wanted = arguments.need("value");
  interpreter.heap().step(static_cast<std::int64_t>(items.size()));
  const auto at = std::find_if(items.begin(), items.end(),
                               [&](const Value& item) { return equal(item, wanted); });
  check(at != items.end(), "index: the list has no such item");
  return static_cast<std::int64_t>(at - items.begin());
}

Value count_of(Interpreter& interpreter, const Value& list, ArgumentReader& arguments) {
  const auto& items = list.list().items;
  const Value wanted = arguments.need("value");
  interpreter.heap().step(static_cast<std::int64_t>(items.size()));
  return static_cast<std::int64_t>(std::count_if(
      items.begin(), items.end(), [&](const Value& item) { return equal(item, wanted); }));
}

Value reverse(Interpreter& interpreter, const Value& list, ArgumentReader&) {
  interpreter.heap().step(static_cast<std::int64_t>(list.list().items.size()));
  std::reverse(list.list().items.begin(), list.list().items.end());
  return Value::none();
}

Value copy_list(Interpreter& interpreter, const Value& list, ArgumentReader&) {
  return interpreter.heap().list(list.list().items);
}

Value get(Interpreter&, const Value& dict, ArgumentReader& arguments) {
  const Value key = arguments.need("key"), otherwise = arguments.next_or("default", Value::none());
  const Value* const found = key.is(Kind::undefined) ? nullptr : dict.dict().find(key);
  return found == nullptr ? otherwise : *found;
}

template <bool kKeys, bool kValues>
Value entries(Interpreter& interpreter, const Value& dict, ArgumentReader&) {
  List* const list = interpreter.heap().list({}, ListForm::view);
  grow(interpreter, dict.dict().size());
  for (const auto& [key, value] : dict.dict().items()) {
    if (kKeys && kValues) {
      list->items.emplace_back(interpreter.heap().list({key, value}, ListForm::tuple));
    } else {
      list->items.push_back(kKeys ? key : value);
    }
  }
  return list;
}

Value pop_key(Interpreter& interpreter, const Value& dict, ArgumentReader& arguments) {
  const Value key = arguments.need("key");
  const std::optional<Value> otherwise = arguments.next("default");
  interpreter.heap().step(static_cast<std::int64_t>(dict.dict().size()));
  const Value* const found = dict.dict().find(key);
  check(found != nullptr || otherwise.has_value(), "pop: the mapping has no such key");
  Value value = found == nullptr ? *otherwise : *found;
  dict.dict().erase(key);
  return value;
}

Value set_default(Interpreter& interpreter, const Value& dict, ArgumentReader& arguments) {
  const Value key = arguments.need("key"), otherwise = arguments.next_or("default", Value::none());
  grow(interpreter, 2);
  if (dict.dict().find(key) == nullptr) dict.dict().set(key, otherwise);
  return *dict.dict().find(key);
}

Value copy_dict(Interpreter& interpreter, const Value& dict, ArgumentReader&) {
  grow(interpreter, 2 * dict.dict().size());
  Dict* const copy = interpreter.heap().dict();
  *copy = dict.dict();
  return copy;
}

Value update(Interpreter& interpreter, const Value& dict, ArgumentReader& arguments) {
  const Value more = arguments.need("mapping");
  check(more.is(Kind::dict), "update by ", more.what(), ", no mapping");
  grow(interpreter, 2 * more.dict().size());
  const std::vector<Dict::Item> items = more.dict().items();
  for (const auto& [key, value] : items) dict.dict().set(key, value);
  return Value::none();
}

const Methods kListMethods = {{"append", append},   {"extend", extend},  {"insert", insert},
                              {"pop", pop_item},    {"index", index_of}, {"count", count_of},
                              {"reverse", reverse}, {"copy", copy_list}};
const Methods kDictMethods = {{"get", get},
                              {"keys", entries<true, false>},
                              {"values", entries<false, true>},
                              {"items", entries<true, true>},
                              {"pop", pop_key},
                              {"update", update},
                              {"setdefault", set_default},
                              {"copy", copy_dict}};

Object* bind(Heap& heap, const Methods& methods, const Value& object, std::string_view name) {
  const auto found = methods.find(name);
  if (found == methods.end()) return nullptr;
  return heap.object<Function>(
      std::string(name), [object, found](Interpreter& interpreter, const Arguments& arguments) {
        ArgumentReader reader(arguments, found->first);
        Value result = found->second(interpreter, object, reader);
        reader.finish();
        return result;
      });
}

}  // namespace

Object* find_list_method(Heap& heap, const Value& object, std::string_view name) {
  const ListForm form = object.list().form;
  const bool reads = name == "index" || name == "count";
  const bool has = form == ListForm::list || (form == ListForm::tuple && reads);
  return has ? bind(heap, kListMethods, object, name) : nullptr;
}

Object* find_dict_method(Heap& heap, const Value& object, std::string_view name) {
  return bind(heap, kDictMethods, object, name);
}

Object* find_method(Heap& heap, const Value& object, std::string_view name) {
  switch (object.kind()) {
    case Kind::text:
      return find_text_method(heap, object, name);
    case Kind::list:
      return find_list_method(heap, object, name);
    case Kind::dict:
      return find_dict_method(heap, object, name);
    default:
      return nullptr;
  }
}

}  // namespace bloomery::jinja
