#include "chat/jinja/value.h"

#include <cmath>

namespace bloomery::jinja {

Value Value::undefined(std::string name) {
  Value value;
  value.text_ = std::make_shared<const Text>(std::move(name));
  return value;
}

std::string Value::undefined_name() const {
  return text_ == nullptr ? std::string() : text_->bytes();
}

bool Value::truth() const {
  switch (kind()) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
      return boolean();
    case Kind::integer:
      return whole() != 0;
    case Kind::real:
      return number() != 0;
    case Kind::text:
      return !text().empty();
    case Kind::list:
      return list().form == ListForm::generator || !list().items.empty();
    case Kind::dict:
      return dict().size() != 0;
    case Kind::object:
      return true;
  }
  return false;
}

std::string Value::what() const {
  switch (kind()) {
    case Kind::undefined:
      return undefined_name().empty() ? "something undefined"
                                      : concat("'", undefined_name(), "', which is undefined");
    case Kind::none:
      return "none";
    case Kind::boolean:
      return "a boolean";
    case Kind::integer:
    case Kind::real:
      return "a number";
    case Kind::text:
      return "a text";
    case Kind::list:
      return list().form == ListForm::generator ? "a generator" : "a list";
    case Kind::dict:
      return "a mapping";
    case Kind::object:
      return object().describe();
  }
  return {};
}

Value Object::call(Interpreter&, const Arguments&) {
  throw Error(concat(describe(), " cannot be called"));
}

std::string Dict::name_of(const Value& key) {
  switch (key.kind()) {
    case Kind::text:
      return "t" + key.text().bytes();
    case Kind::boolean:
    case Kind::integer:
      return concat("n", key.whole());
    case Kind::real: {
      const double number = key.number();
      const bool whole = std::floor(number) == number && std::abs(number) < 9e15;
      return whole ? concat("n", static_cast<std::int64_t>(number)) : concat("r", number);
    }
    case Kind::none:
      return "-";
    default:
      break;
  }
  throw Error(concat("the key of a mapping is ", key.what()));
}

const Value* Dict::find(const Value& key) const {
  const auto found = places_.find(name_of(key));
  return found == places_.end() ? nullptr : &items_[found->second].second;
}

const Value* Dict::find(std::string_view key) const {
  const auto found = places_.find("t" + std::string(key));
  return found == places_.end() ? nullptr : &items_[found->second].second;
}

void Dict::set(const Value& key, Value value) {
  const auto [at, is_new] = places_.try_emplace(name_of(key), items_.size());
  if (is_new) {
    items_.emplace_back(key, std::move(value));
  } else {
    items_[at->second].second = std::move(value);
  }
}

void Dict::erase(const Value& key) {
  const auto found = places_.find(name_of(key));
  if (found == places_.end()) return;
  const std::size_t place = found->second;
  places_.erase(found);
  items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(place));
  for (auto& [name, at] : places_) at -= at > place ? 1 : 0;
}

namespace {

bool equal_dicts(const Dict& a, const Dict& b, int depth) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a.items()) {
    const Value* other = b.find(key);
    if (other == nullptr || !equal(value, *other, depth + 1)) return false;
  }
  return true;
}

bool equal_lists(const List& a, const List& b, int depth) {
  if (&a == &b) return true;
  if (a.form != b.form || a.items.size() != b.items.size() || a.form == ListForm::generator) {
    return false;
  }
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (!equal(a.items[i], b.items[i], depth + 1)) return false;
  }
  return true;
}

}  // namespace

bool equal(const Value& a, const Value& b, int depth) {
  check(depth < kMaxNesting, "a value is nested more than ", kMaxNesting, " deep");
  if (a.is_number() && b.is_number()) {
    return a.is_whole() && b.is_whole() ? a.whole() == b.whole() : a.number() == b.number();
  }
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::text:
      return a.text().bytes() == b.text().bytes();
    case Kind::list:
      return equal_lists(a.list(), b.list(), depth);
    case Kind::dict:
      return &a.dict() == &b.dict() || equal_dicts(a.dict(), b.dict(), depth);
    case Kind::object:
      return &a.object() == &b.object();
    default:
      return true;  // none and undefined
  }
}

bool less(const Value& a, const Value& b, int depth) {
  check(depth < kMaxNesting, "a value is nested more than ", kMaxNesting, " deep");
  if (a.is_number() && b.is_number()) {
    return a.is_whole() && b.is_whole() ? a.whole() < b.whole() : a.number() < b.number();
  }
  // UTF-8 orders texts as their characters do.
  if (a.is(Kind::text) && b.is(Kind::text)) return a.text().bytes() < b.text().bytes();
  check(a.is(Kind::list) && b.is(Kind::list) && a.list().form == b.list().form, "cannot compare ",
        a.what(), " and ", b.what());
  const auto &left = a.list().items, &right = b.list().items;
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (!equal(left[i], right[i], depth + 1)) return less(left[i], right[i], depth + 1);
  }
  return left.size() < right.size();
}

}  // namespace bloomery::jinja
