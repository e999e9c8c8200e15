// A struct field behind an option, with its type erased: read from words, printed as words.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace bloomery {

// The numbers an option takes; for lists, each element.
struct Limits {
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool minimum_allowed = true, maximum_allowed = true;

  std::string text() const;  // "at least 0 and below 1"; empty without limits
  bool contain(double value) const;
};
inline Limits at_least(double minimum) { return {.minimum = minimum}; }
inline Limits above(double minimum) { return {.minimum = minimum, .minimum_allowed = false}; }
inline Limits at_most(double maximum) { return {.maximum = maximum}; }
inline Limits between(double minimum, double maximum) {
  return {.minimum = minimum, .maximum = maximum};
}
// minimum <= value < maximum: probabilities that must leave something.
inline Limits from_to_below(double minimum, double maximum) {
  return {.minimum = minimum, .maximum = maximum, .maximum_allowed = false};
}

// An enum class field: `choices` of the row translate between words and values.
struct EnumField {
  void* field;
  std::int64_t (*read)(const void*);
  void (*write)(void*, std::int64_t);
};

// std::monostate: an option that is accepted and ignored.
using Field =
    std::variant<std::monostate, bool*, int*, std::int64_t*, float*, double*, std::string*,
                 std::optional<bool>*, std::optional<int>*, std::optional<std::int64_t>*,
                 std::optional<float>*, std::optional<double>*, std::optional<std::string>*,
                 std::vector<int>*, std::vector<std::int64_t>*, std::vector<float>*,
                 std::vector<double>*, std::vector<std::string>*, EnumField>;

enum class FieldKind { none, boolean, integer, real, text, choice };

FieldKind kind(const Field& field);
bool is_list(const Field& field);
bool is_optional(const Field& field);

// What words may say besides their type.
struct FieldRules {
  Limits limits;
  // Accepted words; for enum fields with the value each stands for. The first word of a value is
  // the one printed.
  std::vector<std::pair<std::string, std::int64_t>> choices;
};

// Sets the field from the words of a flag or of a JSON value; a list of numbers may also be one
// word with commas. Returns what is wrong, and then leaves the field alone; empty when all is well.
std::string assign(const Field& field, const FieldRules& rules,
                   const std::vector<std::string>& words);

// Empties an optional field.
void reset(const Field& field);

// The value as words that assign() reads back to the same bits; nothing for an empty optional.
std::optional<std::vector<std::string>> words(const Field& field, const FieldRules& rules);

}  // namespace bloomery
