// The table for people: --help, and the effective values at the start of a run.
#include <algorithm>

#include "config/option_table.h"

namespace bloomery {
namespace {

constexpr std::size_t kColumns = 100, kHelpColumn = 34, kValueColumn = 40;

const char* placeholder(const OptionRow& row) {
  switch (kind(row.field)) {
    case FieldKind::none:
    case FieldKind::boolean:
      return "";
    case FieldKind::integer:
      return is_list(row.field) ? " INTEGER..." : " INTEGER";
    case FieldKind::real:
      return is_list(row.field) ? " NUMBER..." : " NUMBER";
    case FieldKind::choice:
      return " WORD";
    case FieldKind::text:
      return is_list(row.field) ? " TEXT..." : " TEXT";
  }
  return "";
}

// What stands behind the flag: "INTEGER", or all words, "gelu|relu".
std::string value_form(const OptionRow& row) {
  std::string words;
  for (const auto& [word, value] : row.rules.choices) {
    words += (words.empty() ? "" : "|") + word;
  }
  const std::string_view form = placeholder(row);
  return !words.empty() || form.empty() ? words : std::string(form.substr(1));
}

// "at least 0; default 1; also --learning-rate"
std::string facts(const OptionRow& row) {
  std::string text;
  const auto append = [&](const std::string& fact) { text += (text.empty() ? "" : "; ") + fact; };
  std::string choices;
  for (const auto& [word, value] : row.rules.choices) {
    choices += (choices.empty() ? "" : ", ") + word;
  }
  if (!choices.empty()) {
    append("one of " + choices);
  }
  if (const std::string limits = row.rules.limits.text(); !limits.empty()) {
    append(limits);
  }
  append(row.must_be_given          ? "required"
         : row.default_text.empty() ? "default empty"
                                    : "default " + row.default_text);
  if (row.alone_word) {
    append("alone it means " + *row.alone_word);
  }
  if (row.takes_arguments) {
    append("may stand without its name");
  }
  for (std::size_t i = 1; i < row.flags.size(); ++i) {
    const OptionRow::Spelling& flag = row.flags[i];
    if (kind(row.field) == FieldKind::boolean) {
      append((flag.implies == "false" ? "off with --" : "also --") + flag.text);
    } else {
      append("also --" + flag.text + (flag.implies ? " for " + *flag.implies : ""));
    }
  }
  return text;
}

// Words of `text` on lines that start at `indent`; the first line continues `line`.
std::string wrapped(std::string line, const std::string& text, std::size_t indent) {
  std::string result;
  bool fresh = true;  // no word on this line yet
  if (line.size() + 1 < indent) {
    line.resize(indent, ' ');
  } else {
    result = line + "\n";
    line.assign(indent, ' ');
  }
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    if (!fresh && line.size() + 1 + (end - begin) > kColumns) {
      result += line + "\n";
      line.assign(indent, ' ');
      fresh = true;
    }
    line += (fresh ? "" : " ") + text.substr(begin, end - begin);
    fresh = false;
    begin = end + 1;
  }
  return result + line + "\n";
}

// Calls body(row) for each row that means something, with a title line before each section.
template <class Body>
std::string by_section(const std::deque<OptionRow>& rows, Body&& body) {
  std::vector<std::string> sections;
  for (const OptionRow& row : rows) {
    if (std::ranges::find(sections, row.section) == sections.end()) {
      sections.push_back(row.section);
    }
  }
  std::string result;
  for (const std::string& section : sections) {
    std::string lines;
    for (const OptionRow& row : rows) {
      if (row.section == section && row.has_meaning()) {
        lines += body(row);
      }
    }
    if (!lines.empty()) {
      result += (result.empty() ? "" : "\n") + section + ":\n" + lines;
    }
  }
  return result;
}

}  // namespace

std::string OptionTable::help() const {
  return by_section(rows_, [](const OptionRow& row) {
    return wrapped("  --" + row.name + placeholder(row), row.help + " (" + facts(row) + ")",
                   kHelpColumn);
  });
}

std::string OptionTable::list() const {
  std::string lines;
  for (const OptionRow& row : rows_) {
    if (!row.has_meaning()) {
      continue;
    }
    for (const OptionRow::Spelling& flag : row.flags) {
      lines += "--" + flag.text + "\t" + (flag.implies ? "" : value_form(row)) + "\t" + row.help +
               " (" + facts(row) + ")\n";
    }
  }
  return lines;
}

std::string OptionTable::text() const {
  return by_section(rows_, [](const OptionRow& row) {
    std::string line = "  " + row.name + " ";
    line += std::string(std::max(kValueColumn, line.size() + 3) - line.size(), '.');
    line += " " + row.value_text();
    return line + (row.given ? "  (" + row.given->place + ")\n" : "\n");
  });
}

}  // namespace bloomery
