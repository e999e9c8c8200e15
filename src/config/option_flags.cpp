// Reading the command line: which words belong to which option, in the order in which they stand.
#include <algorithm>
#include <cctype>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "config/option_table.h"
#include "config/other_names.h"

namespace bloomery {
namespace {

// --name or --name=value.
bool is_name(const std::string& argument) {
  return argument.size() > 2 && argument.starts_with("--");
}

// What cannot be a value unless it stands behind `=`: names, `--` and -x. A number may be negative,
// and `-` alone is a file.
bool looks_like_flag(const std::string& argument) {
  if (argument.size() < 2 || argument[0] != '-') {
    return false;
  }
  const auto second = static_cast<unsigned char>(argument[1]);
  return second > ' ' && std::isdigit(second) == 0 && second != '.';
}

}  // namespace

struct FlagReader {
  using Spelling = OptionRow::Spelling;
  enum class Arity { none, one, many, any };
  // An option as it was written, with its values.
  struct Occurrence {
    OptionRow* row;
    const Spelling* spelling;
    std::vector<std::string> words;

    std::string place() const { return "--" + spelling->text; }
  };

  OptionTable& table;
  std::map<std::string, std::pair<OptionRow*, const Spelling*>> known;
  std::vector<Occurrence> occurrences;
  std::vector<std::string> arguments_alone;

  explicit FlagReader(OptionTable& to_fill) : table(to_fill) {
    for (OptionRow& row : table.rows_) {
      for (const Spelling& spelling : row.flags) {
        check(known.emplace(spelling.text, std::pair{&row, &spelling}).second,
              "two options are spelled --", spelling.text);
      }
    }
  }

  void problem(const std::string& text) { table.problems_.push_back(text); }

  static Arity arity(const OptionRow& row, const Spelling& spelling) {
    if (!row.has_meaning()) {
      return Arity::any;
    }
    if (spelling.implies || kind(row.field) == FieldKind::boolean) {
      return Arity::none;
    }
    return is_list(row.field) ? Arity::many : Arity::one;
  }

  // Takes the arguments apart.
  void divide(const std::vector<std::string>& arguments) {
    for (std::size_t i = 0; i < arguments.size();) {
      const std::string& argument = arguments[i++];
      if (argument == "--") {
        arguments_alone.insert(arguments_alone.end(),
                               arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
        return;
      }
      if (is_name(argument)) {
        take_option(argument, arguments, i);
      } else if (looks_like_flag(argument)) {
        problem(concat("unexpected argument '", argument, "'"));
      } else {
        arguments_alone.push_back(argument);
      }
    }
  }

  // `next` is the place of the first argument behind the name, and then behind the values.
  void take_option(const std::string& argument, const std::vector<std::string>& arguments,
                   std::size_t& next) {
    const std::size_t equals = std::min(argument.find('='), argument.size());
    const std::string written = argument.substr(2, equals - 2);
    const auto found = known.find(canonical_option(written));
    const bool is_known = found != known.end();
    const Arity how_many =
        is_known ? arity(*found->second.first, *found->second.second) : Arity::any;
    std::vector<std::string> words;
    if (equals < argument.size()) {
      words.push_back(argument.substr(equals + 1));
    }
    const std::size_t most = how_many == Arity::none  ? 0
                             : how_many == Arity::one ? 1
                                                      : arguments.size();
    while (next < arguments.size() && words.size() < most && !looks_like_flag(arguments[next])) {
      words.push_back(arguments[next++]);
    }
    if (!is_known) {
      problem(concat("unknown option --", written,
                     advice_for_unknown(written, table.flag_spellings(), "--")));
      return;
    }
    const auto& [row, spelling] = found->second;
    if (words.empty() && row->alone_word && how_many != Arity::none) {
      words.push_back(*row->alone_word);
    }
    if (words.empty() && (how_many == Arity::one || how_many == Arity::many)) {
      problem(concat("--", spelling->text, " needs a value"));
      return;
    }
    occurrences.push_back({row, spelling, std::move(words)});
  }

  void set(const Occurrence& given) {
    OptionRow& row = *given.row;
    std::vector<std::string> words = given.words;
    if (given.spelling->implies) {
      if (!words.empty() && words[0] != "true") {
        return problem(concat(given.place(), " takes no value"));
      }
      words = {*given.spelling->implies};
    } else if (words.empty() && kind(row.field) == FieldKind::boolean) {
      words = {"true"};
    }
    table.set(row, words, given.place(), OptionRow::Source::flag);
  }

  void set_positional() {
    const auto row = std::ranges::find_if(table.rows_, &OptionRow::takes_arguments);
    std::vector<std::string> words;
    for (const std::string& word : arguments_alone) {
      if (row == table.rows_.end() || (!is_list(row->field) && !words.empty())) {
        problem(concat("unexpected argument '", word,
                       "': write the option that it belongs to before it"));
      } else {
        words.push_back(word);
      }
    }
    if (!words.empty()) {
      table.set(*row, words, concat("'", words[0], words.size() > 1 ? "' ..." : "'"),
                OptionRow::Source::argument);
    }
  }

  // Files of options come first, so that flags win over them. Of an option without meaning only
  // the last word counts, as of the others.
  void read(const std::vector<std::string>& arguments) {
    divide(arguments);
    std::map<const OptionRow*, const Occurrence*> last;
    for (const Occurrence& given : occurrences) {
      last[given.row] = &given;
      if (given.row->names_config_files) {
        for (const std::string& file : given.words) {
          table.read_config(file);
        }
      }
    }
    for (const Occurrence& given : occurrences) {
      if (given.row->has_meaning() || last[given.row] == &given) {
        set(given);
      }
    }
    set_positional();
  }
};

void OptionTable::read_flags(const std::vector<std::string>& arguments) {
  FlagReader(*this).read(arguments);
}

void OptionTable::read_config(const std::string& path) {
  std::string text;
  try {
    text = read_file(path);
  } catch (const Error& error) {
    problems_.push_back(concat("--config: ", error.what()));
    return;
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && (text[first] == '{' || text.substr(first, 2) == "//")) {
    read_flat(text, path, OptionRow::Source::config);
  } else {
    read_yaml(text, path);
  }
}

bool wants_help(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") {
      return false;
    }
    if (argument == "--help" || argument == "-h" || argument == kHelpAsList) {
      return true;
    }
  }
  return false;
}

}  // namespace bloomery
