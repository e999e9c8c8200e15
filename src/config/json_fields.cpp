#include "config/json_fields.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "base/json_scan.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

std::shared_ptr<const Json> parse(std::string_view text, const std::string& place) {
  const auto watch = [&place](int depth, Json::parse_event_t, Json&) {
    check(depth <= kMaxJsonTreeDepth, place, ": nested more than ", kMaxJsonTreeDepth, " deep");
    return true;
  };
  try {
    return std::make_shared<const Json>(Json::parse(text, watch));
  } catch (const Json::exception& error) {
    throw Error(concat(place, ": not valid JSON: ", error.what()));
  }
}

template <class T>
constexpr bool is_vector = false;
template <class T>
constexpr bool is_vector<std::vector<T>> = true;
template <class T>
constexpr bool is_pair = false;
template <class A, class B>
constexpr bool is_pair<std::pair<A, B>> = true;

template <class T>
constexpr const char* expected() {
  return std::is_same_v<T, bool>          ? "true or false"
         : std::is_integral_v<T>          ? "a whole number"
         : std::is_same_v<T, double>      ? "a number"
         : std::is_same_v<T, std::string> ? "a text"
         : is_vector<T>                   ? "a list"
         : is_pair<T>                     ? "a list of two"
                                          : "an object";
}

}  // namespace

JsonFields::JsonFields(std::string_view text, std::string place)
    : JsonFields(parse(text, place), place) {}

JsonFields::JsonFields(std::shared_ptr<const Json> object, std::string place)
    : object_(std::move(object)), place_(std::move(place)) {
  check(object_->is_object(), place_, ": not a JSON object");
}

JsonFields JsonFields::of(Json object, std::string place) {
  return JsonFields(std::make_shared<const Json>(std::move(object)), std::move(place));
}

JsonFields::Kind JsonFields::kind(std::string_view name) const {
  const auto found = object_->find(name);
  if (found == object_->end()) {
    return Kind::absent;
  }
  return found->is_null()      ? Kind::null
         : found->is_boolean() ? Kind::boolean
         : found->is_number()  ? Kind::number
         : found->is_string()  ? Kind::text
         : found->is_array()   ? Kind::list
                               : Kind::object;
}

std::vector<std::string> JsonFields::names() const {
  std::vector<std::string> names;
  for (const auto& member : object_->items()) {
    names.push_back(member.key());
  }
  return names;
}

std::string JsonFields::json() const { return object_->dump(); }

std::string JsonFields::json(std::string_view name) const {
  return member(name).dump(-1, ' ', false, Json::error_handler_t::replace);
}

void JsonFields::refuse_others(const std::set<std::string_view>& known) const {
  for (const auto& member : object_->items()) {
    require(known.contains(member.key()), "has ", member.key(),
            ", which is unknown here; a newer program wrote it");
  }
}

const JsonFields::Json& JsonFields::member(std::string_view name) const {
  const auto found = object_->find(name);
  require(found != object_->end(), name, " is missing");
  return *found;
}

template <class T>
T JsonFields::convert(const Json& value, const std::string& name) const {
  const auto require_kind = [&](bool condition) {
    require(condition, name, " is wrong; it must be ", expected<T>());
  };
  if constexpr (std::is_same_v<T, bool>) {
    require_kind(value.is_boolean());
    return value.get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    constexpr std::int64_t kLeast = std::numeric_limits<T>::min();
    constexpr std::int64_t kMost = std::numeric_limits<T>::max();
    require_kind(value.is_number_integer());
    require(value.is_number_unsigned()
                ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(kMost)
                : value.get<std::int64_t>() >= kLeast,
            name, " is wrong; it must be a whole number from ", kLeast, " to ", kMost);
    return value.get<T>();
  } else if constexpr (std::is_same_v<T, double>) {
    require_kind(value.is_number());
    return value.get<double>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    require_kind(value.is_string());
    return value.get<std::string>();
  } else if constexpr (is_vector<T>) {
    require_kind(value.is_array());
    T list;
    for (const Json& item : value) {
      list.push_back(convert<typename T::value_type>(item, concat(name, "[", list.size(), "]")));
    }
    return list;
  } else if constexpr (is_pair<T>) {
    require_kind(value.is_array() && value.size() == 2);
    return {convert<typename T::first_type>(value[0], name + "[0]"),
            convert<typename T::second_type>(value[1], name + "[1]")};
  } else {
    require_kind(value.is_object());
    return JsonFields(std::shared_ptr<const Json>(object_, &value), concat(place_, ": ", name));
  }
}

template <class T>
T JsonFields::get(std::string_view name) const {
  if (kind(name) == Kind::absent) fail(name, expected<T>());
  return convert<T>(member(name), std::string(name));
}

std::int64_t JsonFields::count(std::string_view name) const {
  const auto number = get<std::int64_t>(name);
  require(number >= 0, name, " is ", number, ", less than 0");
  return number;
}

std::int64_t JsonFields::whole(std::string_view name, std::int64_t least, std::int64_t most) const {
  const auto number = get<std::int64_t>(name);
  if (number < least || number > most) {
    fail(name, concat("a whole number from ", least, " to ", most));
  }
  return number;
}

void JsonFields::fail(std::string_view name, std::string_view wanted) const {
  throw Error(concat(place_, ": ", name, has(name) ? " is wrong; " : " is missing; ", "it must be ",
                     wanted));
}

template <class T>
std::vector<std::pair<std::string, T>> JsonFields::members() const {
  std::vector<std::pair<std::string, T>> all;
  for (const auto& member : object_->items()) {
    all.emplace_back(member.key(), convert<T>(member.value(), member.key()));
  }
  return all;
}

int JsonFields::enum_number(std::string_view name, int last) const {
  const int number = get<int>(name);
  check(0 <= number && number <= last, place_, ": ", name, " is ", number, ", not 0 to ", last);
  return number;
}

template bool JsonFields::get(std::string_view) const;
template int JsonFields::get(std::string_view) const;
template std::int64_t JsonFields::get(std::string_view) const;
template double JsonFields::get(std::string_view) const;
template std::string JsonFields::get(std::string_view) const;
template JsonFields JsonFields::get(std::string_view) const;
template std::pair<std::string, std::int64_t> JsonFields::get(std::string_view) const;
template std::vector<std::int64_t> JsonFields::get(std::string_view) const;
template std::vector<std::vector<std::string>> JsonFields::get(std::string_view) const;
template std::vector<double> JsonFields::get(std::string_view) const;
template std::vector<std::string> JsonFields::get(std::string_view) const;
template std::vector<JsonFields> JsonFields::get(std::string_view) const;
template std::vector<std::pair<std::string, std::string>> JsonFields::members() const;
template std::vector<std::pair<std::string, JsonFields>> JsonFields::members() const;

}  // namespace bloomery
