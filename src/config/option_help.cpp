// The table for people: --help, and the effective values at the start of a run.
#include <algorithm>

#include "base/error.h"
#include "base/wrap.h"
#include "config/option_table.h"

namespace bloomery {
namespace {

constexpr std::size_t kValueColumn = 40;

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

bool is_switch(const OptionRow& row) { return kind(row.field) == FieldKind::boolean; }

// Whether the flag turns the option off.
bool turns_off(const OptionRow& row, const OptionRow::Spelling& flag) {
  return is_switch(row) && flag.implies == "false";
}

// The flag that every switch has without being given one: --no-NAME.
bool is_plain_opposite(const OptionRow& row, const OptionRow::Spelling& flag) {
  return turns_off(row, flag) && flag.text == "no-" + row.name;
}

void append(std::string& facts, const std::string& fact) {
  facts += (facts.empty() ? "" : "; ") + fact;
}

// "also --learning-rate; --fp16 for fp16"
void append_spellings(std::string& facts, const OptionRow& row) {
  const bool typed_off = turns_off(row, row.typed());
  for (const OptionRow::Spelling& flag : row.flags) {
    if (flag.text == row.typed().text) {
      continue;
    }
    if (!is_switch(row)) {
      append(facts, flag.implies ? concat("--", flag.text, " for ", *flag.implies)
                                 : concat("also --", flag.text));
    } else if (turns_off(row, flag) == typed_off) {
      append(facts, "also --" + flag.text);
    } else if (!is_plain_opposite(row, flag)) {
      append(facts, "opposite --" + flag.text);
    }
  }
}

std::string default_fact(const OptionRow& row) {
  if (row.must_be_given) {
    return "required";
  }
  if (is_switch(row)) {
    return row.default_text == "none" ? "default none" : "default off";
  }
  return "default " + (row.default_text.empty() ? "none" : row.default_text);
}

// "at least 0; default 1; also --learning-rate"
std::string facts(const OptionRow& row) {
  std::string text, choices;
  for (const auto& [word, value] : row.rules.choices) {
    choices += (choices.empty() ? "" : ", ") + word;
  }
  if (!choices.empty()) {
    append(text, "one of " + choices);
  }
  if (const std::string limits = row.rules.limits.text(); !limits.empty()) {
    append(text, limits);
  }
  append(text, default_fact(row));
  if (row.alone_word) {
    append(text, "without a value " + *row.alone_word);
  }
  if (row.takes_arguments) {
    append(text, "the flag itself may be left out");
  }
  append_spellings(text, row);
  return text;
}

// "  --lr NUMBER   Peak learning rate. (default 0)", the text in a column of its own where there is
// room for two.
std::string help_lines(const OptionRow& row, std::size_t columns) {
  constexpr std::size_t kTwoColumns = 72, kHelpColumn = 28, kIndent = 6;
  const OptionRow::Spelling& flag = row.typed();
  const std::string text = row.help_of(flag) + " (" + facts(row) + ")";
  std::string line = "  --" + flag.text + (flag.implies ? "" : placeholder(row));
  const std::size_t indent = columns < kTwoColumns ? kIndent : kHelpColumn;
  if (columns >= kTwoColumns && line.size() + 2 <= indent) {
    line.resize(indent, ' ');
    return wrapped(line, text, columns, indent) + "\n";
  }
  return line + "\n" + wrapped(std::string(indent, ' '), text, columns, indent) + "\n";
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

const OptionRow::Spelling& OptionRow::typed() const {
  if (default_text != "true" || !is_switch(*this)) {
    return flags.front();
  }
  const auto own = std::ranges::find_if(flags, [&](const Spelling& flag) {
    return turns_off(*this, flag) && !flag.text.starts_with("no-");
  });
  const auto off =
      std::ranges::find_if(flags, [&](const Spelling& flag) { return turns_off(*this, flag); });
  return own != flags.end() ? *own : off != flags.end() ? *off : flags.front();
}

std::string OptionRow::help_of(const Spelling& spelling) const {
  if (turns_off(*this, spelling)) {
    return off_help.empty() ? concat("The opposite of --", name, ": ", help) : off_help;
  }
  if (spelling.implies && !is_switch(*this)) {
    return concat("Short for --", name, " ", *spelling.implies, ".");
  }
  return help;
}

std::string OptionTable::help(std::size_t columns) const {
  std::string required;
  for (const OptionRow& row : rows_) {
    if (row.must_be_given && row.has_meaning()) {
      required += help_lines(row, columns);
    }
  }
  const std::string others = by_section(rows_, [&](const OptionRow& row) {
    return row.must_be_given ? std::string() : help_lines(row, columns);
  });
  return required.empty() ? others
                          : "required:\n" + required + (others.empty() ? "" : "\n") + others;
}

std::string OptionTable::list() const {
  std::string lines;
  const auto add = [&](const OptionRow& row, const OptionRow::Spelling& flag) {
    lines +=
        concat("--", flag.text, "\t", flag.implies ? "" : value_form(row), "\t", row.help_of(flag));
    lines += flag.text == row.typed().text ? concat(" (", facts(row), ")\n")
                                           : concat("\t--", row.typed().text, "\n");
  };
  for (const OptionRow& row : rows_) {
    if (!row.has_meaning()) {
      continue;
    }
    add(row, row.typed());
    for (const OptionRow::Spelling& flag : row.flags) {
      if (flag.text != row.typed().text) {
        add(row, flag);
      }
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
