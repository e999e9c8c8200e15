#include <map>

#include "chat/jinja/interpreter.h"
#include "chat/jinja/text_functions.h"

namespace bloomery::jinja {
namespace {

bool is_sequence(const Value& value) {
  return value.is(Kind::undefined) || value.is(Kind::text) || value.is(Kind::dict) ||
         (value.is(Kind::list) &&
          (value.list().form == ListForm::list || value.list().form == ListForm::tuple));
}

bool is_iterable(const Value& value) {
  return value.is(Kind::undefined) || value.is(Kind::text) || value.is(Kind::dict) ||
         value.is(Kind::list);
}

bool is_same(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is(Kind::list)) return &a.list() == &b.list();
  return a.is(Kind::dict) ? &a.dict() == &b.dict() : equal(a, b);
}

using Test = bool (*)(const Value&);
const std::map<std::string, Test, std::less<>> kTests = {
    {"defined", [](const Value& v) { return !v.is(Kind::undefined); }},
    {"undefined", [](const Value& v) { return v.is(Kind::undefined); }},
    {"none", [](const Value& v) { return v.is(Kind::none); }},
    {"boolean", [](const Value& v) { return v.is(Kind::boolean); }},
    {"true", [](const Value& v) { return v.is(Kind::boolean) && v.boolean(); }},
    {"false", [](const Value& v) { return v.is(Kind::boolean) && !v.boolean(); }},
    {"integer", [](const Value& v) { return v.is(Kind::integer); }},
    {"float", [](const Value& v) { return v.is(Kind::real); }},
    {"number", [](const Value& v) { return v.is_number(); }},
    {"string", [](const Value& v) { return v.is(Kind::text); }},
    {"mapping", [](const Value& v) { return v.is(Kind::dict); }},
    {"sequence", is_sequence},
    {"iterable", is_iterable},
    {"callable", [](const Value& v) { return v.is(Kind::object) && v.object().callable(); }},
    {"lower",
     [](const Value& v) {
       return v.is(Kind::text) && lower(v.text()).bytes() == v.text().bytes() &&
              upper(v.text()).bytes() != v.text().bytes();
     }},
    {"upper",
     [](const Value& v) {
       return v.is(Kind::text) && upper(v.text()).bytes() == v.text().bytes() &&
              lower(v.text()).bytes() != v.text().bytes();
     }},
};

std::int64_t whole_of(const std::string& test, const Value& value) {
  check(value.is_whole(), "is ", test, " of ", value.what());
  return value.whole();
}

using Comparison = bool (*)(const Value&, const Value&);
const std::map<std::string, Comparison, std::less<>> kComparisons = {
    {"eq", [](const Value& a, const Value& b) { return equal(a, b); }},
    {"ne", [](const Value& a, const Value& b) { return !equal(a, b); }},
    {"lt", [](const Value& a, const Value& b) { return less(a, b); }},
    {"gt", [](const Value& a, const Value& b) { return less(b, a); }},
    {"le", [](const Value& a, const Value& b) { return !less(b, a); }},
    {"ge", [](const Value& a, const Value& b) { return !less(a, b); }},
    {"sameas", is_same},
    {"divisibleby",
     [](const Value& a, const Value& b) {
       const std::int64_t divisor = whole_of("divisibleby", b);
       check(divisor != 0, "division by zero");
       return divisor == -1 || whole_of("divisibleby", a) % divisor == 0;
     }},
};

std::string plain_name(const std::string& name) {
  static const std::map<std::string, std::string, std::less<>> kNames = {
      {"equalto", "eq"}, {"==", "eq"},          {"!=", "ne"}, {"<", "lt"}, {"lessthan", "lt"},
      {">", "gt"},       {"greaterthan", "gt"}, {"<=", "le"}, {">=", "ge"}};
  const auto found = kNames.find(name);
  return found == kNames.end() ? name : found->second;
}

}  // namespace

bool Interpreter::test(const std::string& name, const Value& input, const Arguments& arguments) {
  heap_.step();
  const std::size_t given = arguments.positional.size() + arguments.named.size();
  const auto require = [&](std::size_t wanted) {
    check(given == wanted && arguments.named.empty(), "is ", name, " takes ", wanted,
          " values, not ", given);
  };
  if (const auto found = kTests.find(name); found != kTests.end()) {
    require(0);
    return found->second(input);
  }
  if (name == "even" || name == "odd") {
    require(0);
    return (whole_of(name, input) % 2 == 0) == (name == "even");
  }
  if (name == "in") {
    require(1);
    return contains(*this, arguments.positional[0], input);
  }
  if (const auto found = kComparisons.find(plain_name(name)); found != kComparisons.end()) {
    require(1);
    return found->second(input, arguments.positional[0]);
  }
  throw Error(concat("there is no test ", name));
}

}  // namespace bloomery::jinja
