// The members of a JSON object, read by name and type. What is missing or of another type is an
// Error that starts with the place and names the member.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace bloomery {

class JsonFields {
 public:
  // The text of one object, nested at most 32 deep. `place` is a file, or whatever else says where
  // the text comes from.
  JsonFields(std::string_view text, std::string place);
  // The same of an object that is parsed already.
  static JsonFields of(nlohmann::ordered_json object, std::string place);
  // The same object under another name in messages.
  JsonFields named(std::string place) const { return JsonFields(object_, std::move(place)); }

  enum class Kind { absent, null, boolean, number, text, list, object };
  Kind kind(std::string_view name) const;
  bool has(std::string_view name) const {  // neither absent nor null
    return kind(name) != Kind::absent && kind(name) != Kind::null;
  }
  std::vector<std::string> names() const;  // in the order of the text
  const std::string& place() const { return place_; }
  std::string json() const;                       // the whole object
  std::string json(std::string_view name) const;  // one member, of any type
  // An Error names a member that is not among these.
  void refuse_others(const std::set<std::string_view>& known) const;
  // An Error that starts with the place.
  template <class... Parts>
  void require(bool condition, const Parts&... parts) const {
    check(condition, place_, ": ", parts...);
  }

  // An Error that says what the member must be.
  [[noreturn]] void fail(std::string_view name, std::string_view wanted) const;

  // Of bool, int, std::int64_t, double, std::string, vectors of the last three and of vectors of
  // texts, JsonFields and vectors of it for objects, and a list of a text and a whole number as a
  // pair. Whole numbers must be written as such and fit their type.
  template <class T>
  T get(std::string_view name) const;
  std::int64_t count(std::string_view name) const;  // a whole number that is not negative
  std::int64_t whole(std::string_view name, std::int64_t least, std::int64_t most) const;
  // All members, which are of one type, in the order of the text.
  template <class T>
  std::vector<std::pair<std::string, T>> members() const;
  // Nothing where the member is absent or null.
  template <class T>
  std::optional<T> find(std::string_view name) const {
    return has(name) ? std::optional(get<T>(name)) : std::nullopt;
  }

  template <class T>
  void read(std::string_view name, T& to) const {
    to = get<T>(name);
  }
  template <class T>
  void read(std::string_view name, std::optional<T>& to) const {
    to = find<T>(name);
  }
  // An enumeration that is kept as its number, from 0 to that of `last`.
  template <class E>
  void read_enum(std::string_view name, E& to, E last) const {
    to = static_cast<E>(enum_number(name, static_cast<int>(last)));
  }

 private:
  using Json = nlohmann::ordered_json;
  JsonFields(std::shared_ptr<const Json> object, std::string place);
  int enum_number(std::string_view name, int last) const;
  const Json& member(std::string_view name) const;
  template <class T>
  T convert(const Json& value, const std::string& name) const;

  std::shared_ptr<const Json> object_;  // a node that keeps the whole tree
  std::string place_;
};

}  // namespace bloomery
