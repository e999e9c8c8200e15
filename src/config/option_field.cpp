#include "config/option_field.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "base/error.h"

namespace bloomery {
namespace {

template <class T>
struct Unwrapped {
  using type = T;
  static constexpr bool list = false, optional = false;
};
template <class T>
struct Unwrapped<std::optional<T>> {
  using type = T;
  static constexpr bool list = false, optional = true;
};
template <class T>
struct Unwrapped<std::vector<T>> {
  using type = T;
  static constexpr bool list = true, optional = false;
};

// Calls body(field*) for ordinary fields, other(field) for enum and ignored ones.
template <class Body, class Other>
auto visit_field(const Field& field, Body&& body, Other&& other) {
  return std::visit(
      [&](const auto& alternative) {
        if constexpr (std::is_pointer_v<std::decay_t<decltype(alternative)>>) {
          return body(alternative);
        } else {
          return other(alternative);
        }
      },
      field);
}

template <class T>
constexpr FieldKind kind_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return FieldKind::boolean;
  } else if constexpr (std::is_integral_v<T>) {
    return FieldKind::integer;
  } else if constexpr (std::is_floating_point_v<T>) {
    return FieldKind::real;
  } else {
    return FieldKind::text;
  }
}

std::string number_text(double value) {
  constexpr double kExact = 1e15;  // below it, whole numbers are written with all digits
  if (value == std::floor(value) && std::abs(value) < kExact) {
    return std::to_string(static_cast<std::int64_t>(value));
  }
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr};
}

template <class T>
std::optional<T> parse_number(const std::string& word) {
  const char* first = word.data() + (word.starts_with('+') ? 1 : 0);
  const char* last = word.data() + word.size();
  T value{};
  if (const auto result = std::from_chars(first, last, value);
      result.ec == std::errc{} && result.ptr == last) {
    return value;
  }
  if constexpr (std::is_integral_v<T>) {  // 5e8
    const std::optional<double> real = parse_number<double>(word);
    if (real && *real == std::floor(*real) && std::abs(*real) <= 9007199254740992.0 &&
        *real >= static_cast<double>(std::numeric_limits<T>::min()) &&
        *real <= static_cast<double>(std::numeric_limits<T>::max())) {
      return static_cast<T>(*real);
    }
  }
  return std::nullopt;
}

std::string listed(const FieldRules& rules) {
  std::string text;
  for (const auto& [word, value] : rules.choices) {
    text += (text.empty() ? "" : ", ") + word;
  }
  return text;
}

// One word to one value; returns what is wrong.
template <class T>
std::string parse(const std::string& word, const FieldRules& rules, T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    const bool known = rules.choices.empty() ||
                       std::ranges::any_of(
                           rules.choices, [&](const auto& choice) { return choice.first == word; });
    value = word;
    return known ? "" : concat("'", word, "' is not one of ", listed(rules));
  } else if constexpr (std::is_same_v<T, bool>) {
    value = word == "true" || word == "1";
    const bool known = value || word == "false" || word == "0";
    return known ? "" : concat("'", word, "' is neither true nor false");
  } else {
    const std::optional<T> number = parse_number<T>(word);
    const char* type = std::is_integral_v<T> ? "' is not an integer" : "' is not a finite number";
    if (!number || !std::isfinite(static_cast<double>(*number))) {
      return concat("'", word, type, parse_number<double>(word) ? " in range" : "");
    }
    value = *number;
    if (!rules.limits.contain(static_cast<double>(value))) {
      return concat(word, " is out of range: it must be ", rules.limits.text());
    }
    return "";
  }
}

std::vector<std::string> split_commas(const std::vector<std::string>& words) {
  std::vector<std::string> parts;
  for (const std::string& word : words) {
    std::size_t begin = 0;
    for (std::size_t comma; (comma = word.find(',', begin)) != word.npos; begin = comma + 1) {
      parts.push_back(word.substr(begin, comma - begin));
    }
    parts.push_back(word.substr(begin));
  }
  return parts;
}

template <class Target>
std::string assign_to(Target& target, const FieldRules& rules,
                      const std::vector<std::string>& words) {
  using T = typename Unwrapped<Target>::type;
  if constexpr (Unwrapped<Target>::list) {
    Target values;
    for (const std::string& word : std::is_arithmetic_v<T> ? split_commas(words) : words) {
      T value{};
      if (std::string problem = parse(word, rules, value); !problem.empty()) {
        return problem;
      }
      values.push_back(std::move(value));
    }
    target = std::move(values);
  } else {
    if (words.size() != 1) {
      return concat("takes one value, not ", words.size());
    }
    T value{};
    if (std::string problem = parse(words[0], rules, value); !problem.empty()) {
      return problem;
    }
    target = std::move(value);
  }
  return "";
}

std::string assign_to(const EnumField& target, const FieldRules& rules,
                      const std::vector<std::string>& words) {
  if (words.size() != 1) {
    return concat("takes one value, not ", words.size());
  }
  for (const auto& [word, value] : rules.choices) {
    if (word == words[0]) {
      target.write(target.field, value);
      return "";
    }
  }
  return concat("'", words[0], "' is not one of ", listed(rules));
}

template <class T>
std::string word_of(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else {
    char buffer[32];
    return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr};
  }
}

std::string word_of(const EnumField& field, const FieldRules& rules) {
  const std::int64_t current = field.read(field.field);
  for (const auto& [word, value] : rules.choices) {
    if (value == current) {
      return word;
    }
  }
  return concat("value ", current);
}

}  // namespace

std::string Limits::text() const {
  std::string text;
  if (std::isfinite(minimum)) {
    text = (minimum_allowed ? "at least " : "above ") + number_text(minimum);
  }
  if (std::isfinite(maximum)) {
    text += (text.empty() ? "" : " and ") + std::string(maximum_allowed ? "at most " : "below ") +
            number_text(maximum);
  }
  return text;
}

bool Limits::contain(double value) const {
  return (minimum_allowed ? value >= minimum : value > minimum) &&
         (maximum_allowed ? value <= maximum : value < maximum);
}

FieldKind kind(const Field& field) {
  return visit_field(
      field,
      [](auto* target) {
        return kind_of<typename Unwrapped<std::decay_t<decltype(*target)>>::type>();
      },
      [](const auto& other) {
        return std::is_same_v<std::decay_t<decltype(other)>, EnumField> ? FieldKind::choice
                                                                        : FieldKind::none;
      });
}

bool is_list(const Field& field) {
  return visit_field(
      field, [](auto* target) { return Unwrapped<std::decay_t<decltype(*target)>>::list; },
      [](const auto&) { return false; });
}

bool is_optional(const Field& field) {
  return visit_field(
      field, [](auto* target) { return Unwrapped<std::decay_t<decltype(*target)>>::optional; },
      [](const auto&) { return false; });
}

std::string assign(const Field& field, const FieldRules& rules,
                   const std::vector<std::string>& words) {
  return visit_field(
      field, [&](auto* target) { return assign_to(*target, rules, words); },
      [&](const auto& other) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(other)>, EnumField>) {
          return assign_to(other, rules, words);
        }
        return "";
      });
}

void reset(const Field& field) {
  visit_field(
      field,
      [](auto* target) {
        if constexpr (Unwrapped<std::decay_t<decltype(*target)>>::optional) {
          target->reset();
        }
      },
      [](const auto&) {});
}

std::optional<std::vector<std::string>> words(const Field& field, const FieldRules& rules) {
  using Words = std::optional<std::vector<std::string>>;
  return visit_field(
      field,
      [](auto* target) -> Words {
        using Target = std::decay_t<decltype(*target)>;
        std::vector<std::string> found;
        if constexpr (Unwrapped<Target>::list) {
          for (const auto& value : *target) {
            found.push_back(word_of(value));
          }
        } else if constexpr (Unwrapped<Target>::optional) {
          if (!target->has_value()) {
            return std::nullopt;
          }
          found.push_back(word_of(**target));
        } else {
          found.push_back(word_of(*target));
        }
        return found;
      },
      [&](const auto& other) -> Words {
        if constexpr (std::is_same_v<std::decay_t<decltype(other)>, EnumField>) {
          return std::vector{word_of(other, rules)};
        }
        return std::nullopt;
      });
}

}  // namespace bloomery
