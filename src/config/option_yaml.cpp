// The part of YAML that a file of options needs: `option: value` lines, lists in brackets or one
// value per line behind dashes, quotes and comments.
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "config/option_table.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

// Where `wanted` first stands outside of quotes, from `begin` on; npos: nowhere.
template <class Wanted>
std::size_t find_unquoted(const std::string& text, std::size_t begin, const Wanted& wanted) {
  char quote = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (quote == 0 && wanted(i)) {
      return i;
    }
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      quote = 0;
    } else if (quote == 0 && (text[i] == '"' || text[i] == '\'')) {
      quote = text[i];
    }
  }
  return text.npos;
}

std::string without_comment(const std::string& line) {
  const std::size_t comment = find_unquoted(line, 0, [&](std::size_t i) {
    return line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t');
  });
  return line.substr(0, comment);
}

struct YamlReader {
  const std::string& place;
  std::size_t number = 0;  // of the line

  [[noreturn]] void fail(const std::string& why) const {
    throw Error(concat(place, ", line ", number, ": ", why));
  }

  Json scalar(const std::string& text) const {
    if (text.empty() || text == "~" || text == "null") {
      return nullptr;
    }
    if (text[0] == '"') {
      const Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
      if (!parsed.is_string()) {
        fail("the text in double quotes does not end, or has something behind it");
      }
      return parsed;
    }
    if (text[0] == '\'') {
      return single_quoted(text);
    }
    if (std::string("|>&*!{%@`").find(text[0]) != std::string::npos) {
      fail(concat("a value cannot start with '", text[0],
                  "' here: write plain values, lists or text in quotes"));
    }
    const Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    return parsed.is_number() || parsed.is_boolean() ? parsed : Json(text);
  }

  Json single_quoted(const std::string& text) const {
    std::string value;
    for (std::size_t i = 1; i < text.size(); ++i) {
      if (text[i] != '\'') {
        value += text[i];
      } else if (i + 1 < text.size() && text[i + 1] == '\'') {
        value += text[++i];
      } else if (i + 1 == text.size()) {
        return value;
      } else {
        break;
      }
    }
    fail("the text in single quotes does not end, or has something behind it");
  }

  // [a, b]
  Json list(const std::string& text) const {
    if (text.back() != ']') {
      fail("a list in brackets must end in its line");
    }
    Json values = Json::array();
    const std::string inside = text.substr(1, text.size() - 2);
    for (std::size_t begin = 0; begin < inside.size();) {
      const std::size_t comma =
          std::min(find_unquoted(inside, begin, [&](std::size_t i) { return inside[i] == ','; }),
                   inside.size());
      values.push_back(scalar(trimmed(inside.substr(begin, comma - begin))));
      begin = comma + 1;
    }
    return values;
  }

  Json value(const std::string& text) const {
    return text.starts_with('[') ? list(text) : scalar(text);
  }

  // Key and the text behind its colon.
  std::pair<std::string, std::string> entry(const std::string& line) const {
    const std::size_t colon = find_unquoted(line, 0, [&](std::size_t i) {
      return line[i] == ':' && (i + 1 == line.size() || line[i + 1] == ' ' || line[i + 1] == '\t');
    });
    if (colon == line.npos || line[0] == ' ' || line[0] == '\t') {
      fail("expected `option: value`; options are not nested");
    }
    const Json key = scalar(trimmed(line.substr(0, colon)));
    return {key.is_string() ? key.get<std::string>() : key.dump(), trimmed(line.substr(colon + 1))};
  }

  Json read(const std::string& text) {
    Json all = Json::object();
    std::string open;  // the key whose value may follow, line by line
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      ++number;
      line = without_comment(line);
      const std::string bare = trimmed(line);
      if (bare.empty() || line.starts_with("---")) {
        continue;
      }
      if ((bare == "-" || bare.starts_with("- ")) && !open.empty()) {
        Json& values = all[open];
        values = values.is_null() ? Json::array() : values;
        values.push_back(scalar(trimmed(bare.substr(1))));
        continue;
      }
      const auto [key, behind] = entry(line);
      if (all.contains(key)) {
        fail(concat("the key \"", key, "\" appears twice"));
      }
      all[key] = value(behind);
      open = behind.empty() ? key : "";
    }
    return all;
  }
};

}  // namespace

void OptionTable::read_yaml(const std::string& text, const std::string& place) {
  std::string json;
  try {
    json = YamlReader{place}.read(text).dump();
  } catch (const Error& error) {
    problems_.push_back(error.what());
    return;
  } catch (const Json::exception&) {
    problems_.push_back(concat(place, " is not text in UTF-8"));
    return;
  }
  read_flat(json, place, OptionRow::Source::config);
}

}  // namespace bloomery
