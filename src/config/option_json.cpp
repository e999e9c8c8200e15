// Options as JSON: our own flat form (every option by name, what checkpoints store) and DeepSpeed's
// nested configuration through the paths that rows declare.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/json_scan.h"
#include "config/nearest.h"
#include "config/option_table.h"
#include "config/other_names.h"

namespace bloomery {

using Json = nlohmann::ordered_json;

namespace {

const char* expected(const OptionRow& row) {
  switch (kind(row.field)) {
    case FieldKind::boolean:
      return "true or false";
    case FieldKind::integer:
    case FieldKind::real:
      return "a number";
    default:
      return "a string";
  }
}

bool fits(const OptionRow& row, const Json& value) {
  switch (kind(row.field)) {
    case FieldKind::none:
      return true;
    case FieldKind::boolean:
      return value.is_boolean();
    case FieldKind::integer:
    case FieldKind::real:
      return value.is_number();
    default:  // an object is kept as its JSON
      return value.is_string() || value.is_object();
  }
}

std::string word(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

Json scalar(const OptionRow& row, const std::string& text) {
  switch (kind(row.field)) {
    case FieldKind::boolean:
      return text == "true";
    case FieldKind::integer:
    case FieldKind::real:
      return Json::parse(text);
    default:
      return text;
  }
}

}  // namespace

struct JsonReader {
  OptionTable& table;
  const std::string& source;  // for messages
  OptionRow::Source from;
  // Words that an entry says an option does not have: "fp16.enabled": false.
  struct Denied {
    const OptionRow& row;
    std::string word, place;
  };
  std::vector<Denied> denied = {};

  void problem(const std::string& text) { table.problems_.push_back(text); }

  // Parsed as an object whose keys are unique, or a problem and null.
  Json parse(const std::string& text) {
    std::vector<std::set<std::string>> seen;  // keys of the objects that enclose this place
    const auto watch = [&](int, Json::parse_event_t event, Json& value) {
      if (event == Json::parse_event_t::object_start) {
        seen.emplace_back();
      } else if (event == Json::parse_event_t::object_end) {
        seen.pop_back();
      } else if (event == Json::parse_event_t::key &&
                 !seen.back().insert(value.get<std::string>()).second) {
        problem(concat(source, ": the key ", value.dump(), " appears twice"));
      }
      return true;
    };
    try {
      check_json_depth(text);
      Json parsed = Json::parse(text, watch, true, /*ignore_comments=*/true);
      if (parsed.is_object()) {
        return parsed;
      }
      problem(concat(source, " must be a JSON object, {\"option\": value, ...}"));
    } catch (const Json::exception& error) {
      problem(concat(source, " is not valid JSON: ", error.what()));
    } catch (const Error& error) {
      problem(concat(source, ": ", error.what()));
    }
    return nullptr;
  }

  void set(OptionRow& row, const OptionRow::Spelling& spelling, const Json& value) {
    const std::string place = concat(spelling.text, " in ", source);
    if (spelling.implies) {
      return set_implied(row, *spelling.implies, value, place);
    }
    if (value.is_null() && (is_optional(row.field) || !row.has_meaning())) {
      return table.set(row, std::nullopt, place, from);
    }
    const bool list = value.is_array() && is_list(row.field);
    std::vector<std::string> words;
    for (const Json& element : list ? value : Json::array({value})) {
      if (!fits(row, element)) {
        return problem(concat(place, " must be ", is_list(row.field) ? "a list with " : "",
                              expected(row), ", not ", value.dump()));
      }
      words.push_back(word(element));
    }
    table.set(row, words, place, from);
  }

  // "bf16": true says as much as --bf16; false is the opposite of a yes/no option, and of other
  // options only contradicts the one word.
  void set_implied(OptionRow& row, const std::string& implied, const Json& value,
                   const std::string& place) {
    if (!value.is_boolean()) {
      return problem(concat(place, " must be true or false, not ", value.dump()));
    }
    if (value.get<bool>()) {
      table.set(row, std::vector{implied}, place, from);
    } else if (kind(row.field) == FieldKind::boolean) {
      table.set(row, std::vector<std::string>{implied == "true" ? "false" : "true"}, place, from);
    } else {
      denied.push_back({row, implied, place});
    }
  }

  // When all is read: another entry may have overruled the word.
  void check_denied() {
    for (const auto& [row, word, place] : denied) {
      if (row.given && row.value_text() == word) {
        problem(concat(row.given->place, " and ", place,
                       " = false contradict each other: keep one of them"));
      }
    }
  }

  void read_flat(const std::string& text) {
    const Json parsed = parse(text);
    for (const auto& [key, value] : parsed.items()) {
      const OptionRow::Spelling* spelling = nullptr;
      if (OptionRow* row = table.find_flag(key, &spelling)) {
        set(*row, *spelling, value);
      } else {
        problem(concat("unknown option ", key, " in ", source,
                       advice_for_unknown(key, table.flag_spellings(), "")));
      }
    }
    check_denied();
  }

  using Paths = std::map<std::string, std::pair<OptionRow*, const OptionRow::Spelling*>>;

  bool ignored(const std::string& path) {
    for (const auto& [prefix, because] : table.ignored_paths_) {
      if (path == prefix) {
        table.notes_.push_back(concat(path, " in ", source, " is ignored: ", because));
        return true;
      }
    }
    return false;
  }

  bool refused(const std::string& path, const Json& value) {
    for (const OptionTable::RefusedPath& row : table.refused_paths_) {
      if (path != row.path) {
        continue;
      }
      const bool has_switch = value.is_object() && value.contains(row.switch_key);
      const std::string said = word(has_switch ? value[row.switch_key] : value);
      if (std::ranges::none_of(row.harmless,
                               [&](const std::string& h) { return same_word(h, said); })) {
        problem(concat(path, has_switch ? "." + row.switch_key + " = " + said : "", " in ", source,
                       " is refused: ", row.because));
      }
      return true;
    }
    return false;
  }

  void read_nested(const Json& object, const std::string& prefix, const Paths& paths) {
    for (const auto& [key, value] : object.items()) {
      const std::string path = prefix + key;
      if (ignored(path) || refused(path, value)) {
        continue;
      }
      if (const auto found = paths.find(path); found != paths.end()) {
        if (value != "auto") {  // left to the program, as DeepSpeed's integrations write it
          set(*found->second.first, *found->second.second, value);
        }
      } else if (value.is_object()) {
        read_nested(value, path + ".", paths);
      } else {
        std::vector<std::string> names;
        for (const auto& [name, row] : paths) {
          names.push_back(name);
        }
        problem(concat("unknown entry ", path, " in ", source, suggestion(path, names)));
      }
    }
  }

  void read_deepspeed(const std::string& text) {
    Paths paths;
    for (OptionRow& row : table.rows_) {
      for (const OptionRow::Spelling& spelling : row.deepspeeds) {
        check(paths.emplace(spelling.text, std::pair{&row, &spelling}).second,
              "two options have the DeepSpeed path ", spelling.text);
      }
    }
    if (const Json parsed = parse(text); parsed.is_object()) {
      read_nested(parsed, "", paths);
      check_denied();
    }
  }
};

void OptionTable::read_json(const std::string& text, const std::string& place) {
  read_flat(text, place, OptionRow::Source::record);
}

void OptionTable::read_flat(const std::string& json, const std::string& place,
                            OptionRow::Source source) {
  JsonReader{*this, place, source}.read_flat(json);
}

void OptionTable::read_deepspeed(const std::string& text, const std::string& place) {
  JsonReader{*this, place, OptionRow::Source::deepspeed}.read_deepspeed(text);
}

namespace {

template <class Chosen>
std::string json_of(const std::deque<OptionRow>& rows, const Chosen& chosen) {
  Json all = Json::object();
  for (const OptionRow& row : rows) {
    if (!row.has_meaning() || row.names_config_files || !chosen(row)) {
      continue;
    }
    const auto found = words(row.field, row.rules);
    if (is_list(row.field)) {
      Json list = Json::array();
      for (const std::string& element : *found) {
        list.push_back(scalar(row, element));
      }
      all[row.name] = list;
    } else {
      all[row.name] = found ? scalar(row, found->front()) : Json(nullptr);
    }
  }
  return all.dump(2) + "\n";
}

}  // namespace

std::string OptionTable::json() const {
  return json_of(rows_, [](const OptionRow&) { return true; });
}

std::string OptionTable::given_json() const {
  return json_of(rows_, [](const OptionRow& row) {
    return row.given && row.given->source < OptionRow::Source::record;
  });
}

}  // namespace bloomery
