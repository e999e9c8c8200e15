#include <algorithm>
#include <cmath>
#include <limits>

#include "chat/jinja/format.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/print.h"
#include "chat/jinja/text_functions.h"
#include "tokenizer/utf8.h"

namespace bloomery::jinja {
namespace {

[[noreturn]] void refuse(const std::string& sign, const Value& left, const Value& right) {
  throw Error(concat("cannot compute ", left.what(), " ", sign, " ", right.what()));
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

Value whole_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  std::int64_t power = 1;
  for (std::int64_t i = 0; i < exponent && power != 0 && !(base == 1); ++i) {
    check(!__builtin_mul_overflow(power, base, &power), "a number does not fit 64 bits");
    if (base == -1 && i > 1) return exponent % 2 == 0 ? std::int64_t{1} : std::int64_t{-1};
  }
  return power;
}

Value whole_arithmetic(const std::string& sign, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  if (sign == "+") {
    overflow = __builtin_add_overflow(a, b, &result);
  } else if (sign == "-") {
    overflow = __builtin_sub_overflow(a, b, &result);
  } else if (sign == "*") {
    overflow = __builtin_mul_overflow(a, b, &result);
  } else if (sign == "**") {
    return whole_power(a, b);
  } else {
    check(b != 0, "division by zero");
    if (sign == "/") return static_cast<double>(a) / static_cast<double>(b);
    overflow = a == std::numeric_limits<std::int64_t>::min() && b == -1;
    if (!overflow) result = sign == "//" ? floor_quotient(a, b) : a - floor_quotient(a, b) * b;
  }
  check(!overflow, "a number does not fit 64 bits");
  return result;
}

Value real_arithmetic(const std::string& sign, double a, double b) {
  if (sign == "+") return a + b;
  if (sign == "-") return a - b;
  if (sign == "*") return a * b;
  if (sign == "**") return std::pow(a, b);
  check(b != 0, "division by zero");
  if (sign == "/") return a / b;
  const double quotient = std::floor(a / b);
  return sign == "//" ? quotient : a - quotient * b;
}

Value repeated(Heap& heap, const Value& value, std::int64_t times) {
  const auto count = static_cast<std::uint64_t>(std::max<std::int64_t>(times, 0));
  if (value.is(Kind::text)) {
    heap.charge(value.text().size(), count);
    Text text;
    for (std::uint64_t i = 0; i < count && !value.text().empty(); ++i) text.append(value.text());
    return text;
  }
  const std::vector<Value>& items = value.list().items;
  heap.charge(items.size() * sizeof(Value), count);
  List* const list = heap.list({}, value.list().form);
  for (std::uint64_t i = 0; i < count && !items.empty(); ++i)
    list->items.insert(list->items.end(), items.begin(), items.end());
  return list;
}

bool is_sequence(const Value& value) {
  return value.is(Kind::text) || (value.is(Kind::list) && (value.list().form == ListForm::list ||
                                                           value.list().form == ListForm::tuple));
}

Text joined(Heap& heap, const Text& left, const Text& right) {
  heap.charge(left.size() + right.size());
  Text text = left.as_markup(false);
  text.append(right);
  return text;
}

Text sum(Heap& heap, const Text& left, const Text& right) {
  if (!left.markup() && !right.markup()) return joined(heap, left, right);
  return joined(heap, escape(heap, left), escape(heap, right)).as_markup();
}

}  // namespace

Value binary(Heap& heap, const std::string& sign, const Value& left, const Value& right) {
  if (sign == "~") return joined(heap, to_text(heap, left), to_text(heap, right));
  if (left.is_number() && right.is_number()) {
    return left.is_whole() && right.is_whole()
               ? whole_arithmetic(sign, left.whole(), right.whole())
               : real_arithmetic(sign, left.number(), right.number());
  }
  if (sign == "+" && left.is(Kind::text) && right.is(Kind::text))
    return sum(heap, left.text(), right.text());
  if (sign == "+" && is_sequence(left) && is_sequence(right) && left.kind() == right.kind() &&
      left.list().form == right.list().form) {
    heap.charge(sizeof(Value), left.list().items.size() + right.list().items.size());
    List* const list = heap.list(left.list().items, left.list().form);
    list->items.insert(list->items.end(), right.list().items.begin(), right.list().items.end());
    return list;
  }
  if (sign == "*" && is_sequence(left) && right.is_whole())
    return repeated(heap, left, right.whole());
  if (sign == "*" && is_sequence(right) && left.is_whole())
    return repeated(heap, right, left.whole());
  if (sign == "%" && left.is(Kind::text)) {
    const bool several = right.is(Kind::list) && right.list().form == ListForm::tuple;
    return percent_format(heap, left.text(),
                          several ? right.list().items : std::vector<Value>{right});
  }
  refuse(sign, left, right);
}

bool contains(Interpreter& interpreter, const Value& container, const Value& item) {
  if (container.is(Kind::text)) {
    check(item.is(Kind::text), "cannot look for ", item.what(), " in a text");
    return container.text().bytes().find(item.text().bytes()) != std::string::npos;
  }
  if (container.is(Kind::dict)) {
    if (item.is(Kind::undefined)) return false;
    return container.dict().find(item) != nullptr;
  }
  const std::vector<Value> items = interpreter.items(container);
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& one) { return equal(one, item); });
}

namespace {

// Python's slice.indices.
struct Range {
  std::int64_t start, stop, step;
};

Range make_range(std::int64_t size, const Value& start, const Value& stop, const Value& step) {
  for (const Value* bound : {&start, &stop, &step}) {
    check(bound->is(Kind::none) || bound->is_whole(), "a slice by ", bound->what(),
          ", no whole number");
  }
  Range range{0, 0, step.is(Kind::none) ? 1 : step.whole()};
  check(range.step != 0, "a slice with step 0");
  const bool forward = range.step > 0;
  const std::int64_t lowest = forward ? 0 : -1, highest = forward ? size : size - 1;
  const auto placed = [&](const Value& bound, std::int64_t otherwise) {
    if (bound.is(Kind::none)) return otherwise;
    const std::int64_t given = bound.whole();
    return given < 0 ? (given < -size ? lowest : std::max(given + size, lowest))
                     : std::min(given, highest);
  };
  range.start = placed(start, forward ? lowest : highest);
  range.stop = placed(stop, forward ? highest : lowest);
  return range;
}

template <class Visit>
void for_each(const Range& range, const Visit& visit) {
  for (std::int64_t i = range.start; range.step > 0 ? i < range.stop : i > range.stop;) {
    visit(static_cast<std::size_t>(i));
    if (__builtin_add_overflow(i, range.step, &i)) return;
  }
}

Text slice_text(Heap& heap, const Text& text, const Value& start, const Value& stop,
                const Value& step) {
  const std::string& bytes = text.bytes();
  std::vector<std::size_t> places;  // of characters; empty where each byte is one
  const std::size_t count = count_characters(bytes);
  if (count != bytes.size()) {
    heap.charge(sizeof(std::size_t), count);
    for (std::size_t i = 0; i < bytes.size();
         i += static_cast<std::size_t>(utf8_at(bytes, i).length))
      places.push_back(i);
    places.push_back(bytes.size());
  }
  const auto place = [&](std::size_t i) { return places.empty() ? i : places[i]; };
  const Range range = make_range(static_cast<std::int64_t>(count), start, stop, step);
  heap.charge(bytes.size());
  if (range.step == 1) {
    return range.start >= range.stop ? Text()
                                     : text.part(place(static_cast<std::size_t>(range.start)),
                                                 place(static_cast<std::size_t>(range.stop)));
  }
  Text part;
  for_each(range, [&](std::size_t i) { part.append(text, place(i), place(i + 1)); });
  return part;
}

}  // namespace

Value slice(Heap& heap, const Value& object, const Value& start, const Value& stop,
            const Value& step) {
  check(!object.is(Kind::undefined), "a slice of ", object.what());
  if (!is_sequence(object)) return Value::undefined("slice");
  if (object.is(Kind::text)) return slice_text(heap, object.text(), start, stop, step);
  const std::vector<Value>& items = object.list().items;
  const Range range = make_range(static_cast<std::int64_t>(items.size()), start, stop, step);
  List* const list = heap.list({}, object.list().form);
  for_each(range, [&](std::size_t i) { list->items.push_back(items[i]); });
  heap.charge(sizeof(Value), list->items.size());
  return list;
}

}  // namespace bloomery::jinja
