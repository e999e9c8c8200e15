// The values that templates compute with: Python's, as far as templates see them. Lists, dicts and
// objects belong to a Heap, which frees all of them at once, so that cycles harm nobody.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "chat/jinja/text.h"

namespace bloomery::jinja {

struct List;
class Dict;
class Object;

class Value {
 public:
  enum class Kind { undefined, none, boolean, integer, real, text, list, dict, object };

  Value() = default;                         // undefined
  static Value undefined(std::string name);  // which one, for messages
  static Value none() { return Value(Kind::none); }
  Value(bool value) : kind_(Kind::boolean) { data_.whole = value; }          // NOLINT
  Value(std::int64_t value) : kind_(Kind::integer) { data_.whole = value; }  // NOLINT
  Value(double value) : kind_(Kind::real) { data_.real = value; }            // NOLINT
  Value(Text text)                                                           // NOLINT
      : kind_(Kind::text), text_(std::make_shared<const Text>(std::move(text))) {}
  Value(List* list) : kind_(Kind::list) { data_.list = list; }            // NOLINT
  Value(Dict* dict) : kind_(Kind::dict) { data_.dict = dict; }            // NOLINT
  Value(Object* object) : kind_(Kind::object) { data_.object = object; }  // NOLINT
  static Value text(std::string_view bytes) { return Text(std::string(bytes)); }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return this->kind() == kind; }
  // A boolean counts as the number 0 or 1, as in Python.
  bool is_whole() const { return is(Kind::integer) || is(Kind::boolean); }
  bool is_number() const { return is_whole() || is(Kind::real); }

  bool boolean() const { return data_.whole != 0; }
  std::int64_t whole() const { return data_.whole; }  // of is_whole()
  double number() const {                             // of is_number()
    return is(Kind::real) ? data_.real : static_cast<double>(data_.whole);
  }
  const Text& text() const { return *text_; }
  List& list() const { return *data_.list; }
  Dict& dict() const { return *data_.dict; }
  Object& object() const { return *data_.object; }
  std::string undefined_name() const;  // of undefined

  bool truth() const;
  // What a user calls it in a message: "a list", "undefined 'x'".
  std::string what() const;

 private:
  explicit Value(Kind kind) : kind_(kind) {}

  Kind kind_ = Kind::undefined;
  union {
    std::int64_t whole = 0;
    double real;
    List* list;
    Dict* dict;
    Object* object;
  } data_;
  std::shared_ptr<const Text> text_;  // of something undefined, its name
};

using Kind = Value::Kind;

// A generator can be gone through once and is true even if empty; a view is what dict.items()
// gives. Neither can be indexed.
enum class ListForm { list, tuple, view, generator };

struct List {
  std::vector<Value> items;
  ListForm form = ListForm::list;
};

// In order of insertion.
class Dict {
 public:
  using Item = std::pair<Value, Value>;
  const std::vector<Item>& items() const { return items_; }
  std::size_t size() const { return items_.size(); }
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(const Value& key, Value value);
  void erase(const Value& key);

 private:
  static std::string name_of(const Value& key);  // equal for equal keys
  std::vector<Item> items_;
  std::unordered_map<std::string, std::size_t> places_;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Interpreter;

// Something with attributes, or that can be called: functions, macros, namespaces, a loop.
class Object {
 public:
  virtual ~Object() = default;
  virtual Value attribute(Interpreter&, std::string_view) { return {}; }
  virtual bool callable() const { return false; }
  virtual Value call(Interpreter&, const Arguments&);
  virtual std::string describe() const = 0;  // as it would be printed
};

// Python's rules. Order of things that have none is an Error.
bool equal(const Value& a, const Value& b, int depth = 0);
bool less(const Value& a, const Value& b, int depth = 0);

inline constexpr int kMaxNesting = 100;  // of lists and dicts in each other

}  // namespace bloomery::jinja
