#include "config/option_table.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/error.h"

namespace bloomery {
namespace {

std::string joined(const std::optional<std::vector<std::string>>& words) {
  if (!words) return "none";
  std::string text;
  for (const std::string& word : *words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// The words of a choice, otherwise the first sentence of the help.
std::string brief(const OptionRow& row) {
  std::string words;
  for (const auto& [word, value] : row.rules.choices) {
    words += (words.empty() ? "one of " : ", ") + word;
  }
  if (!words.empty()) return words;
  const std::size_t stop = row.help.find(". ");
  return stop == std::string::npos ? row.help : row.help.substr(0, stop + 1);
}

}  // namespace

std::string canonical_option(std::string_view name) {
  std::string canonical(name);
  std::ranges::replace(canonical, '_', '-');
  return canonical;
}

OptionRow& OptionRow::alias(std::string_view spelling) {
  flags.push_back({canonical_option(spelling), std::nullopt});
  return *this;
}

OptionRow& OptionRow::shorthand(std::string_view flag, std::string word) {
  flags.push_back({canonical_option(flag), std::move(word)});
  return *this;
}

OptionRow& OptionRow::off(std::string text) {
  off_help = std::move(text);
  return *this;
}

OptionRow& OptionRow::deepspeed(std::string path) {
  deepspeeds.push_back({std::move(path), std::nullopt});
  return *this;
}

OptionRow& OptionRow::deepspeed(std::string path, std::string word) {
  deepspeeds.push_back({std::move(path), std::move(word)});
  return *this;
}

OptionRow& OptionRow::deepspeed_wins() {
  deepspeed_overrules = true;
  return *this;
}

OptionRow& OptionRow::flag_wins() {
  flag_overrules = true;
  return *this;
}

OptionRow& OptionRow::required() {
  must_be_given = true;
  return *this;
}

OptionRow& OptionRow::alone(std::string word) {
  alone_word = std::move(word);
  return *this;
}

OptionRow& OptionRow::positional() {
  takes_arguments = true;
  return *this;
}

std::string OptionRow::value_text() const { return joined(words(field, rules)); }

OptionRow& OptionTable::add_row(const std::string& name, Field field, std::string help,
                                FieldRules rules) {
  check(find_flag(name) == nullptr, "option --", name, " is declared twice");
  OptionRow& row = rows_.emplace_back();
  row.section = section_;
  row.name = canonical_option(name);
  row.help = std::move(help);
  row.field = field;
  row.rules = std::move(rules);
  row.flags.push_back({row.name, std::nullopt});
  if (kind(field) == FieldKind::boolean && !row.name.starts_with("no-")) {
    row.shorthand("no-" + row.name, "false");
  }
  row.default_text = row.value_text();
  return row;
}

OptionRow& OptionTable::add_choice(const std::string& name, std::string& field, std::string help,
                                   const std::vector<std::string>& words) {
  FieldRules rules;
  for (const std::string& word : words) rules.choices.emplace_back(word, 0);
  return add_row(name, Field(&field), std::move(help), std::move(rules));
}

void OptionTable::ignore(const std::string& name, std::string because) {
  add_row(name, std::monostate{}, "", {}).ignored_because = std::move(because);
}

void OptionTable::ignore_deepspeed(std::string path, std::string because) {
  ignored_paths_.emplace_back(std::move(path), std::move(because));
}

void OptionTable::refuse(const std::string& name, std::vector<std::string> harmless,
                         std::string because) {
  OptionRow& row = add_row(name, std::monostate{}, "", {});
  row.refused_because = std::move(because);
  row.harmless_words = std::move(harmless);
}

void OptionTable::refuse_deepspeed(std::string path, std::string switch_key,
                                   std::vector<std::string> harmless, std::string because) {
  refused_paths_.push_back(
      {std::move(path), std::move(switch_key), std::move(harmless), std::move(because)});
}

bool same_word(const std::string& a, const std::string& b) {
  char *end_a = nullptr, *end_b = nullptr;
  const double x = std::strtod(a.c_str(), &end_a), y = std::strtod(b.c_str(), &end_b);
  if (!a.empty() && !b.empty() && *end_a == '\0' && *end_b == '\0') return x == y;
  return std::ranges::equal(
      a, b, {}, [](unsigned char c) { return std::tolower(c); },
      [](unsigned char c) { return std::tolower(c); });
}

OptionRow* OptionTable::find_flag(std::string_view spelling, const OptionRow::Spelling** which) {
  const std::string canonical = canonical_option(spelling);
  for (OptionRow& row : rows_) {
    for (const OptionRow::Spelling& flag : row.flags) {
      if (flag.text == canonical) {
        if (which != nullptr) *which = &flag;
        return &row;
      }
    }
  }
  return nullptr;
}

// Of options with a meaning: nobody is told to use one that is refused.
std::vector<std::string> OptionTable::flag_spellings() const {
  std::vector<std::string> all;
  for (const OptionRow& row : rows_) {
    for (const OptionRow::Spelling& flag : row.flags) {
      if (row.has_meaning()) all.push_back(flag.text);
    }
  }
  return all;
}

void OptionTable::set(OptionRow& row, const std::optional<std::vector<std::string>>& words,
                      const std::string& place, OptionRow::Source source) {
  if (!row.ignored_because.empty()) {
    notes_.push_back(concat(place, " is ignored: ", row.ignored_because));
    return;
  }
  if (!row.refused_because.empty()) {
    const std::string value = words ? joined(words) : "";
    const auto is_harmless = [&](const std::string& word) {
      return std::ranges::any_of(row.harmless_words,
                                 [&](const std::string& known) { return same_word(known, word); });
    };
    const bool harmless =
        words && !words->empty() && std::ranges::all_of(*words, is_harmless);  // also said twice
    if (!harmless) {
      problems_.push_back(
          concat(place, value.empty() ? "" : " " + value, " is refused: ", row.refused_because));
    }
    return;
  }
  const std::optional<OptionRow::Given> earlier = row.given;
  const auto kept = bloomery::words(row.field, row.rules);
  if (!words) {
    reset(row.field);
  } else if (const std::string problem = assign(row.field, row.rules, *words); !problem.empty()) {
    problems_.push_back(concat(place, ": ", problem));
    return;
  }
  const OptionRow::Given now{place, row.value_text(), source};
  if (!earlier || earlier->value == now.value || replaces(row, *earlier, now)) {
    row.given = now;
  } else {
    kept ? static_cast<void>(assign(row.field, row.rules, *kept)) : reset(row.field);
  }
}

bool OptionTable::replaces(const OptionRow& row, const OptionRow::Given& earlier,
                           const OptionRow::Given& now) {
  using Source = OptionRow::Source;
  const auto text = [](const OptionRow::Given& given) {
    return concat(given.place, " = ", given.value);
  };
  const auto is_shorthand = [&](const OptionRow::Given& given) {
    return kind(row.field) != FieldKind::boolean &&
           std::ranges::any_of(row.flags, [&](const OptionRow::Spelling& flag) {
             return flag.implies && "--" + flag.text == given.place;
           });
  };
  const bool from_user = now.source == Source::flag || now.source == Source::config;
  if (earlier.source == now.source && from_user && !(is_shorthand(earlier) && is_shorthand(now))) {
    notes_.push_back(concat(text(now), " counts, because it comes after ", text(earlier)));
    return true;
  }
  const auto is_typed = [](const OptionRow::Given& given) {
    return given.source == Source::flag || given.source == Source::argument;
  };
  if (earlier.source == Source::config && is_typed(now)) return true;
  if (is_typed(earlier) && now.source == Source::config) return false;
  const bool from_deepspeed = now.source == Source::deepspeed;
  if ((row.deepspeed_overrules || row.flag_overrules) &&
      from_deepspeed != (earlier.source == Source::deepspeed)) {
    const bool counts = from_deepspeed == row.deepspeed_overrules;
    notes_.push_back(
        concat(text(counts ? now : earlier), " overrules ", text(counts ? earlier : now)));
    return counts;
  }
  problems_.push_back(
      concat(text(earlier), " and ", text(now), " contradict each other: keep one of them"));
  return false;
}

void OptionTable::take_config_files() {
  section("files of options");
  add("config", config_files_,
      "Files with options, JSON or YAML, under the names of the flags. Flags override the files.")
      .names_config_files = true;
}

void OptionTable::finish(const std::vector<std::string>& further) {
  std::vector<std::string> all = problems_;
  for (const OptionRow& row : rows_) {
    const auto is_of_row = [&](const std::string& problem) {
      return problem.starts_with(concat("--", row.name, ":")) ||
             problem.starts_with(concat("--", row.name, " "));
    };
    if (row.must_be_given && !row.given && std::ranges::none_of(problems_, is_of_row)) {
      all.push_back(concat("--", row.name, " is required: ", brief(row)));
    }
  }
  all.insert(all.end(), further.begin(), further.end());
  if (all.empty()) return;
  std::string message = all.size() == 1 ? "" : concat(all.size(), " problems with the options:");
  for (const std::string& problem : all) message += (message.empty() ? "" : "\n  ") + problem;
  throw Error(message);
}

const OptionRow& OptionTable::row(std::string_view name) const {
  const OptionRow* found = const_cast<OptionTable*>(this)->find_flag(name);
  check(found != nullptr, "there is no option --", name);
  return *found;
}

std::string OptionTable::given_by(std::string_view name) const {
  const OptionRow& found = row(name);
  return found.given ? found.given->place : "";
}

std::vector<std::string> OptionTable::names() const {
  std::vector<std::string> all;
  for (const OptionRow& row : rows_) {
    if (row.has_meaning()) all.push_back(row.name);
  }
  return all;
}

std::vector<OptionDifference> differences(const OptionTable& before, const OptionTable& after) {
  constexpr const char* kAbsent = "(no such option)";
  std::vector<OptionDifference> found;
  const std::vector<std::string> old_names = before.names(), new_names = after.names();
  for (const std::string& name : old_names) {
    const std::string old_value = before.row(name).value_text();
    const bool present = std::ranges::find(new_names, name) != new_names.end();
    const std::string new_value = present ? after.row(name).value_text() : kAbsent;
    if (old_value != new_value) {
      found.push_back({name, old_value, new_value});
    }
  }
  for (const std::string& name : new_names) {
    if (std::ranges::find(old_names, name) == old_names.end()) {
      found.push_back({name, kAbsent, after.row(name).value_text()});
    }
  }
  return found;
}

}  // namespace bloomery
