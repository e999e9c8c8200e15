// Reading the command line. CLI11 takes the arguments apart; which names exist, what they mean and
// what is wrong with them is the table's business, so that all problems are found in one pass.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "config/nearest.h"
#include "config/option_table.h"

namespace bloomery {

struct FlagReader {
  using Spelling = OptionRow::Spelling;
  enum class Arity { none, one, many, any };

  explicit FlagReader(OptionTable& to_fill) : table(to_fill) {}

  OptionTable& table;
  CLI::App app;
  // One CLI11 option per spelling in use, so that messages say what was written.
  std::map<std::string, CLI::Option*> options;
  std::map<std::string, std::pair<OptionRow*, const Spelling*>> known;

  static Arity arity(const OptionRow& row, const Spelling& spelling) {
    if (!row.has_meaning()) {
      return Arity::any;
    }
    if (spelling.implies || kind(row.field) == FieldKind::boolean) {
      return Arity::none;
    }
    return is_list(row.field) ? Arity::many : Arity::one;
  }

  void index_spellings() {
    for (OptionRow& row : table.rows_) {
      for (const Spelling& spelling : row.flags) {
        check(known.emplace(spelling.text, std::pair{&row, &spelling}).second,
              "two options are spelled --", spelling.text);
      }
    }
  }

  void declare(const std::string& name, Arity how_many) {
    if (options.contains(name)) {
      return;
    }
    CLI::Option* option =
        how_many == Arity::none ? app.add_flag("--" + name) : app.add_option("--" + name);
    constexpr int kMany = CLI::detail::expected_max_vector_size;
    if (how_many != Arity::none) {
      option->expected(how_many == Arity::any ? 0 : 1, how_many == Arity::one ? 1 : kMany);
      option->allow_extra_args(how_many != Arity::one);
    }
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    options[name] = option;
  }

  static bool is_name(const std::string& argument) {
    return argument.size() > 2 && argument.starts_with("--");
  }

  // The arguments with canonical names; those that cannot be given to CLI11 become problems.
  std::vector<std::string> accepted(const std::vector<std::string>& arguments) {
    std::vector<std::string> result;
    std::set<std::string> lists;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::string& argument = arguments[i];
      if (!is_name(argument)) {
        result.push_back(argument);
        continue;
      }
      const std::size_t equals = std::min(argument.find('='), argument.size());
      const std::string written = argument.substr(2, equals - 2);
      const std::string name = canonical_option(written);
      const bool value_follows = i + 1 < arguments.size() && !is_name(arguments[i + 1]);
      const auto found = known.find(name);
      if (found == known.end()) {
        const std::string guess = nearest(name, table.flag_spellings());
        table.problems_.push_back(concat("unknown option --", written,
                                         guess.empty() ? "" : "; did you mean --" + guess + "?"));
        while (i + 1 < arguments.size() && !is_name(arguments[i + 1])) {
          ++i;  // its values
        }
        continue;
      }
      const Arity how_many = arity(*found->second.first, *found->second.second);
      const bool lacks_value = (how_many == Arity::one || how_many == Arity::many) &&
                               equals == argument.size() && !value_follows;
      if (const auto& alone = found->second.first->alone_word; lacks_value && alone) {
        declare(name, how_many);
        result.insert(result.end(), {"--" + name, *alone});
        continue;
      }
      if (lacks_value) {
        table.problems_.push_back(concat("--", name, " needs a value"));
        continue;
      }
      if (how_many == Arity::many && !lists.insert(name).second) {
        table.problems_.push_back(
            concat("--", name, " is given twice: write all values after one"));
      }
      declare(name, how_many);
      if (equals < argument.size() && how_many != Arity::none) {
        result.push_back("--" + name);  // apart, because CLI11 takes an empty value for none
        result.push_back(argument.substr(equals + 1));
      } else {
        result.push_back("--" + name + argument.substr(equals));
      }
    }
    return result;
  }

  void parse(std::vector<std::string> arguments) {
    app.set_help_flag();
    app.allow_extras();
    std::ranges::reverse(arguments);  // CLI11 takes them from the back
    try {
      app.parse(std::move(arguments));
    } catch (const CLI::ParseError& error) {
      table.problems_.push_back(error.what());
    }
    set_positional(app.remaining());
  }

  void set_positional(const std::vector<std::string>& extras) {
    const auto row = std::ranges::find_if(table.rows_, &OptionRow::takes_arguments);
    std::vector<std::string> words;
    for (const std::string& extra : extras) {
      const bool looks_like_flag = extra.size() > 1 && extra.starts_with('-');
      if (row == table.rows_.end() || looks_like_flag || (!is_list(row->field) && !words.empty())) {
        table.problems_.push_back(concat("unexpected argument '", extra, "'"));
      } else {
        words.push_back(extra);
      }
    }
    if (!words.empty()) {
      table.set(*row, words, concat("'", words[0], words.size() > 1 ? "' ..." : "'"));
    }
  }

  void set(OptionRow& row, const Spelling& spelling, const std::vector<std::string>& results) {
    const std::string place = "--" + spelling.text;
    if (!row.has_meaning()) {
      std::vector<std::string> words = results;
      std::erase(words, "");  // what CLI11 says of a flag without value
      table.set(row, words, place);
      return;
    }
    if (is_list(row.field)) {
      table.set(row, results, place);
      return;
    }
    for (const std::string& word : results) {
      if (!spelling.implies) {
        table.set(row, std::vector{word}, place);
      } else if (word == "true") {
        table.set(row, std::vector{*spelling.implies}, place);
      } else {
        table.problems_.push_back(concat(place, " takes no value"));
      }
    }
  }

  void read(const std::vector<std::string>& arguments) {
    index_spellings();
    parse(accepted(arguments));
    for (OptionRow& row : table.rows_) {
      for (const Spelling& spelling : row.flags) {
        const auto found = options.find(spelling.text);
        if (found != options.end()) {
          set(row, spelling, found->second->results());
        }
      }
    }
  }
};

void OptionTable::read_flags(const std::vector<std::string>& arguments) {
  FlagReader(*this).read(arguments);
}

bool wants_help(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") {
      return false;
    }
    if (argument == "--help" || argument == "-h") {
      return true;
    }
  }
  return false;
}

}  // namespace bloomery
