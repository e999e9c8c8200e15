#include <algorithm>

#include "chat/jinja/filters.h"
#include "chat/jinja/print.h"
#include "chat/jinja/text_functions.h"
#include "tokenizer/utf8.h"

namespace bloomery::jinja {
namespace {

Value length(Interpreter& interpreter, const Value& input, ArgumentReader&) {
  if (input.is(Kind::text))
    return static_cast<std::int64_t>(count_characters(input.text().bytes()));
  if (input.is(Kind::dict)) return static_cast<std::int64_t>(input.dict().size());
  check(input.is(Kind::undefined) ||
            (input.is(Kind::list) && input.list().form != ListForm::generator),
        "length of ", input.what());
  return static_cast<std::int64_t>(interpreter.items(input).size());
}

Value list(Interpreter& interpreter, const Value& input, ArgumentReader&) {
  return interpreter.heap().list(interpreter.items(input));
}

Value first(Interpreter& interpreter, const Value& input, ArgumentReader&) {
  const std::vector<Value> items = interpreter.items(input);
  return items.empty() ? Value::undefined("first") : items.front();
}

Value last(Interpreter& interpreter, const Value& input, ArgumentReader&) {
  const std::vector<Value> items = interpreter.items(input);
  return items.empty() ? Value::undefined("last") : items.back();
}

Value reverse(Interpreter& interpreter, const Value& input, ArgumentReader&) {
  std::vector<Value> items = interpreter.items(input);
  std::reverse(items.begin(), items.end());
  if (input.is(Kind::text)) return join(interpreter.heap(), Text(), items);
  return interpreter.heap().list(std::move(items), ListForm::generator);
}

Value pairs(Interpreter& interpreter, const Value& input, ArgumentReader&) {
  check(input.is(Kind::dict) || input.is(Kind::undefined), "items of ", input.what(),
        ", no mapping");
  List* const list = interpreter.heap().list({}, ListForm::generator);
  if (input.is(Kind::dict)) {
    for (const auto& [key, value] : input.dict().items())
      list->items.emplace_back(interpreter.heap().list({key, value}, ListForm::tuple));
  }
  return list;
}

// What order, minimum and uniqueness go by: the attribute if one is named, small letters unless
// case counts.
Value order_key(Interpreter& interpreter, const Value& item, const Value& attribute,
                bool case_sensitive) {
  Value key = attribute.is(Kind::none) ? item : follow(interpreter, item, attribute);
  return !case_sensitive && key.is(Kind::text) ? Value(lower(key.text())) : key;
}

struct Keyed {
  Value key, item;
};

std::vector<Keyed> keyed(Interpreter& interpreter, const std::vector<Value>& items,
                         const Value& attribute, bool case_sensitive) {
  std::vector<Keyed> all;
  for (const Value& item : items)
    all.push_back({order_key(interpreter, item, attribute, case_sensitive), item});
  // What cannot be compared must be found before sorting, which may not be left half-way.
  for (std::size_t i = 1; i < all.size(); ++i) less(all[0].key, all[i].key);
  return all;
}

void sort_by_key(Heap& heap, std::vector<Keyed>& all, bool reversed) {
  heap.step(static_cast<std::int64_t>(all.size()) * 32);
  std::stable_sort(all.begin(), all.end(), [&](const Keyed& a, const Keyed& b) {
    return reversed ? less(b.key, a.key) : less(a.key, b.key);
  });
}

Value sort(Interpreter& interpreter, const Value& input, ArgumentReader& arguments) {
  const bool reversed = arguments.flag("reverse", false),
             case_sensitive = arguments.flag("case_sensitive", false);
  const Value attribute = arguments.next_or("attribute", Value::none());
  std::vector<Keyed> all = keyed(interpreter, interpreter.items(input), attribute, case_sensitive);
  sort_by_key(interpreter.heap(), all, reversed);
  List* const list = interpreter.heap().list();
  for (Keyed& one : all) list->items.push_back(std::move(one.item));
  return list;
}

Value dict_sort(Interpreter& interpreter, const Value& input, ArgumentReader& arguments) {
  check(input.is(Kind::dict), "dictsort of ", input.what(), ", no mapping");
  const bool case_sensitive = arguments.flag("case_sensitive", false);
  const Value by = arguments.next_or("by", Value::text("key"));
  const bool by_value = arguments.text(by, "by").bytes() == "value",
             reversed = arguments.flag("reverse", false);
  std::vector<Value> items;
  for (const auto& [key, value] : input.dict().items())
    items.emplace_back(interpreter.heap().list({key, value}, ListForm::tuple));
  std::vector<Keyed> all = keyed(interpreter, items, Value(std::int64_t{by_value}), case_sensitive);
  sort_by_key(interpreter.heap(), all, reversed);
  List* const list = interpreter.heap().list();
  for (Keyed& one : all) list->items.push_back(std::move(one.item));
  return list;
}

template <bool kLargest>
Value extreme(Interpreter& interpreter, const Value& input, ArgumentReader& arguments) {
  const bool case_sensitive = arguments.flag("case_sensitive", false);
  const Value attribute = arguments.next_or("attribute", Value::none());
  const std::vector<Keyed> all =
      keyed(interpreter, interpreter.items(input), attribute, case_sensitive);
  if (all.empty()) return Value::undefined("minimum or maximum of nothing");
  const Keyed* best = all.data();
  for (const Keyed& one : all) {
    if (kLargest ? less(best->key, one.key) : less(one.key, best->key)) best = &one;
  }
  return best->item;
}

Value unique(Interpreter& interpreter, const Value& input, ArgumentReader& arguments) {
  const bool case_sensitive = arguments.flag("case_sensitive", false);
  const Value attribute = arguments.next_or("attribute", Value::none());
  Dict seen;
  List* const list = interpreter.heap().list({}, ListForm::generator);
  for (const Value& item : interpreter.items(input)) {
    const Value key = order_key(interpreter, item, attribute, case_sensitive);
    if (seen.find(key) != nullptr) continue;
    seen.set(key, true);
    list->items.push_back(item);
  }
  return list;
}

Value sum(Interpreter& interpreter, const Value& input, ArgumentReader& arguments) {
  const Value attribute = arguments.next_or("attribute", Value::none());
  Value total = arguments.next_or("start", std::int64_t{0});
  for (const Value& item : interpreter.items(input)) {
    total = binary(interpreter.heap(), "+", total,
                   attribute.is(Kind::none) ? item : follow(interpreter, item, attribute));
  }
  return total;
}

Value join_filter(Interpreter& interpreter, const Value& input, ArgumentReader& arguments) {
  const Text between = to_text(interpreter.heap(), arguments.next_or("d", Value::text("")));
  const Value attribute = arguments.next_or("attribute", Value::none());
  std::vector<Value> items = interpreter.items(input);
  if (!attribute.is(Kind::none)) {
    for (Value& item : items) item = follow(interpreter, item, attribute);
  }
  return join(interpreter.heap(), between, items);
}

Value batch(Interpreter& interpreter, const Value& input, ArgumentReader& arguments) {
  const std::int64_t size = arguments.whole("linecount", 0);
  const std::optional<Value> fill = arguments.next("fill_with");
  check(size > 0 && size <= 1'000'000, "batch: of ", size);
  List* const all = interpreter.heap().list({}, ListForm::generator);
  for (const Value& item : interpreter.items(input)) {
    if (all->items.empty() ||
        all->items.back().list().items.size() == static_cast<std::size_t>(size)) {
      all->items.emplace_back(interpreter.heap().list());
    }
    all->items.back().list().items.push_back(item);
  }
  if (fill && !all->items.empty()) {
    interpreter.heap().charge(sizeof(Value), static_cast<std::uint64_t>(size));
    all->items.back().list().items.resize(static_cast<std::size_t>(size), *fill);
  }
  return all;
}

}  // namespace

const Filters& list_filters() {
  static const Filters filters = {{"length", length},
                                  {"count", length},
                                  {"list", list},
                                  {"first", first},
                                  {"last", last},
                                  {"reverse", reverse},
                                  {"items", pairs},
                                  {"sort", sort},
                                  {"dictsort", dict_sort},
                                  {"min", extreme<false>},
                                  {"max", extreme<true>},
                                  {"unique", unique},
                                  {"sum", sum},
                                  {"join", join_filter},
                                  {"batch", batch}};
  return filters;
}

}  // namespace bloomery::jinja
