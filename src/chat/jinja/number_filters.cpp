#include <charconv>
#include <cmath>

#include "chat/jinja/filters.h"
#include "chat/jinja/print.h"

namespace bloomery::jinja {
namespace {

std::optional<double> read_real(const Value& value) {
  if (value.is_number()) return value.number();
  if (!value.is(Kind::text)) return std::nullopt;
  const std::string& bytes = value.text().bytes();
  const Bounds bounds = strip_space(bytes);
  double number = 0;
  const auto read = std::from_chars(bytes.data() + bounds.begin, bytes.data() + bounds.end, number);
  if (read.ec != std::errc() || read.ptr != bytes.data() + bounds.end) return std::nullopt;
  return number;
}

Value to_whole(Interpreter&, const Value& input, ArgumentReader& arguments) {
  const Value otherwise = arguments.next_or("default", std::int64_t{0});
  const std::int64_t base = arguments.whole("base", 10);
  check(base >= 2 && base <= 36, "int: base ", base);
  if (input.is_whole()) return input.whole();
  if (input.is(Kind::text)) {
    const std::string& bytes = input.text().bytes();
    const Bounds bounds = strip_space(bytes);
    std::int64_t whole = 0;
    const auto read = std::from_chars(bytes.data() + bounds.begin, bytes.data() + bounds.end, whole,
                                      static_cast<int>(base));
    if (read.ec == std::errc() && read.ptr == bytes.data() + bounds.end) return whole;
  }
  const std::optional<double> real = read_real(input);
  if (!real || !(std::abs(*real) < 9e18)) return otherwise;
  return static_cast<std::int64_t>(*real);
}

Value to_real(Interpreter&, const Value& input, ArgumentReader& arguments) {
  const Value otherwise = arguments.next_or("default", 0.0);
  const std::optional<double> real = read_real(input);
  return real ? Value(*real) : otherwise;
}

Value absolute(Interpreter&, const Value& input, ArgumentReader&) {
  check(input.is_number(), "abs of ", input.what());
  if (input.is(Kind::real)) return std::abs(input.number());
  check(input.whole() != INT64_MIN, "a number does not fit 64 bits");
  return std::abs(input.whole());
}

Value round_filter(Interpreter&, const Value& input, ArgumentReader& arguments) {
  const std::int64_t digits = arguments.whole("precision", 0);
  const Value method = arguments.next_or("method", Value::text("common"));
  check(input.is_number(), "round of ", input.what());
  const double scale = std::pow(10.0, static_cast<double>(digits)), scaled = input.number() * scale;
  const std::string& how = arguments.text(method, "method").bytes();
  check(how == "common" || how == "ceil" || how == "floor", "round: method ", how);
  return (how == "ceil"    ? std::ceil(scaled)
          : how == "floor" ? std::floor(scaled)
                           : std::nearbyint(scaled)) /
         scale;
}

Value default_filter(Interpreter&, const Value& input, ArgumentReader& arguments) {
  const Value otherwise = arguments.next_or("default_value", Value::text(""));
  const bool by_truth = arguments.flag("boolean", false);
  return input.is(Kind::undefined) || (by_truth && !input.truth()) ? otherwise : input;
}

Value attribute_filter(Interpreter& interpreter, const Value& input, ArgumentReader& arguments) {
  const Value name = arguments.need("name");
  const std::string& wanted = arguments.text(name, "name").bytes();
  // Items of a mapping are none of its attributes.
  return input.is(Kind::dict) ? Value::undefined(wanted) : interpreter.attribute(input, wanted);
}

}  // namespace

const Filters& number_filters() {
  static const Filters filters = {{"int", to_whole},           {"float", to_real},
                                  {"abs", absolute},           {"round", round_filter},
                                  {"default", default_filter}, {"d", default_filter},
                                  {"attr", attribute_filter}};
  return filters;
}

}  // namespace bloomery::jinja
