// Options from one declaration each. A module keeps a plain struct with defaults and describes it:
//
//   struct AdamOptions { float lr = 3e-4f, beta1 = 0.9f; };
//   void describe(OptionTable& t, AdamOptions& o) {
//     t.section("optimizer");
//     t.add("lr", o.lr, "Peak learning rate.", at_least(0)).deepspeed("optimizer.params.lr");
//     t.add("adam-beta1", o.beta1, "Decay of the first moment.", from_to_below(0, 1));
//   }
//
// From the rows come flags, JSON in and out, help, checks, the table of effective values and the
// difference between two runs. Reading collects every problem; finish() throws them as one Error.
// In names `-` and `_` are the same letter. A table refers to the structs it describes: they must
// outlive it.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/option_field.h"

namespace bloomery {

struct OptionRow {
  // One way to write the option. A spelling that `implies` a word stands for it alone: --bf16.
  struct Spelling {
    std::string text;
    std::optional<std::string> implies;
  };
  // argument: a word without a flag. config: a file of options. record: what a program stored.
  enum class Source { flag, argument, config, record, deepspeed };
  // Who set the option, and to what.
  struct Given {
    std::string place;  // "--lr", "lr in run.json"
    std::string value;
    Source source = Source::flag;
  };

  // Further spellings of flags and of JSON keys.
  OptionRow& alias(std::string_view spelling);
  // A flag without value that means this option with `word`: shorthand("bf16", "bf16").
  OptionRow& shorthand(std::string_view flag, std::string word);
  // What a boolean's flag that turns it off does: help for --no-NAME, which is what people type
  // where the default is on.
  OptionRow& off(std::string text);
  // The path in a DeepSpeed configuration, "zero_optimization.stage"; with `word`, a yes/no entry
  // of which `true` means that word: deepspeed("bf16.enabled", "bf16").
  OptionRow& deepspeed(std::string path);
  OptionRow& deepspeed(std::string path, std::string word);
  // The DeepSpeed configuration overrules a differing flag, with a note instead of an error.
  OptionRow& deepspeed_wins();
  // A flag overrules a differing DeepSpeed configuration, with a note instead of an error.
  OptionRow& flag_wins();
  OptionRow& required();
  // The flag may stand without a value and then means this word: `--profile` for `--profile pt`.
  OptionRow& alone(std::string word);
  // Arguments that belong to no flag are values of this option: `data inspect PREFIX`.
  OptionRow& positional();

  std::string value_text() const;  // the effective value; "none" for an empty optional
  // The spelling that changes something: the name, or where a boolean is on by default a flag that
  // turns it off.
  const Spelling& typed() const;
  // What the flag does as it is written: "Short for --dtype bf16." of a shorthand.
  std::string help_of(const Spelling& spelling) const;
  // Neither ignored nor refused.
  bool has_meaning() const { return ignored_because.empty() && refused_because.empty(); }

  std::string section, name, help, off_help;
  Field field;
  FieldRules rules;
  std::vector<Spelling> flags;       // the name first
  std::vector<Spelling> deepspeeds;  // paths
  std::string default_text;
  bool must_be_given = false, deepspeed_overrules = false, flag_overrules = false;
  bool takes_arguments = false;
  bool names_config_files = false;
  std::optional<Given> given;
  std::optional<std::string> alone_word;
  std::string ignored_because;              // of an option that is accepted without meaning
  std::string refused_because;              // of an option whose feature does not exist
  std::vector<std::string> harmless_words;  // of a refused option: values that ask for nothing
};

class OptionTable {
 public:
  OptionTable() = default;
  OptionTable(const OptionTable&) = delete;  // rows may refer to the table itself
  OptionTable& operator=(const OptionTable&) = delete;

  // Title of the rows that follow.
  void section(std::string title) { section_ = std::move(title); }

  template <class T>
  requires(!std::is_enum_v<T>) OptionRow& add(const std::string& name, T& field, std::string help,
                                              const Limits& limits = {}) {
    return add_row(name, Field(&field), std::move(help), {.limits = limits});
  }
  // A text that must be one of these words.
  OptionRow& add_choice(const std::string& name, std::string& field, std::string help,
                        const std::vector<std::string>& words);
  // An enum: each word with its value.
  template <class E>
  requires std::is_enum_v<E> OptionRow& add(const std::string& name, E& field, std::string help,
                                            const std::vector<std::pair<std::string, E>>& choices) {
    FieldRules rules;
    for (const auto& [word, value] : choices) {
      rules.choices.emplace_back(word, static_cast<std::int64_t>(value));
    }
    const EnumField erased{
        &field,
        [](const void* from) { return static_cast<std::int64_t>(*static_cast<const E*>(from)); },
        [](void* to, std::int64_t value) { *static_cast<E*>(to) = static_cast<E>(value); }};
    return add_row(name, erased, std::move(help), std::move(rules));
  }
  // A flag, or a DeepSpeed path with all below it, that is accepted without meaning because
  // leaving it out cannot change results. Its use gives a note.
  void ignore(const std::string& name, std::string because);
  void ignore_deepspeed(std::string path, std::string because);
  // A flag whose feature does not exist: its use is a problem that says why, except with one of
  // the harmless words, which say what holds anyway ("1" of --pipeline-model-parallel-size).
  void refuse(const std::string& name, std::vector<std::string> harmless, std::string because);
  // Likewise a DeepSpeed path with all below it. It is harmless when the value itself, or its entry
  // `switch_key` ("enabled", "device"), is one of the harmless words.
  void refuse_deepspeed(std::string path, std::string switch_key, std::vector<std::string> harmless,
                        std::string because);

  // Adds --config: files of options, JSON or simple YAML, that read_flags() reads before the flags.
  void take_config_files();

  // Each sets fields at once and collects what is wrong. `place` names the source in messages.
  // A flag, or an entry of a file of options, that comes again: the last counts, with a note, as in
  // Python's argparse; two shorthands for different words of an option contradict each other, as
  // two flags do there. Flags count more than files of options.
  void read_flags(const std::vector<std::string>& arguments);
  // What json() wrote. A value that was given differently before is a contradiction.
  void read_json(const std::string& text, const std::string& place);
  void read_deepspeed(const std::string& text, const std::string& place);
  // Throws one Error with all problems of reading and of `further` (rules across fields).
  void finish(const std::vector<std::string>& further = {});

  const std::vector<std::string>& problems() const { return problems_; }
  const std::vector<std::string>& notes() const { return notes_; }

  // Whether an option was given rather than left at its default, and where ("--lr"; empty: not).
  bool given(std::string_view name) const { return !given_by(name).empty(); }
  std::string given_by(std::string_view name) const;
  const OptionRow& row(std::string_view name) const;  // by any flag spelling; throws if unknown
  const std::deque<OptionRow>& rows() const { return rows_; }

  std::vector<std::string> names() const;  // in order of declaration, of those with a meaning
  // What must be given, then the rest by section, in lines of at most so many columns.
  std::string help(std::size_t columns = 80) const;
  // One line per spelling, for programs: --name, what it takes, the help, and the flag under which
  // help() describes the option where that is another one, with tabs between.
  std::string list() const;
  std::string text() const;  // effective values by section; given ones say by whom
  std::string json() const;  // every value; read_json gives the same bits back
  // The values that flags and files of options gave: with --config, the same command again.
  std::string given_json() const;

 private:
  friend struct FlagReader;
  friend struct JsonReader;

  OptionRow& add_row(const std::string& name, Field field, std::string help, FieldRules rules);
  OptionRow* find_flag(std::string_view spelling, const OptionRow::Spelling** which = nullptr);
  std::vector<std::string> flag_spellings() const;
  // Sets a row from words (none: empty an optional), noting problems and contradictions.
  void set(OptionRow& row, const std::optional<std::vector<std::string>>& words,
           const std::string& place, OptionRow::Source source);
  // True when the value that was just set replaces an earlier, different one.
  bool replaces(const OptionRow& row, const OptionRow::Given& earlier, const OptionRow::Given& now);
  void read_config(const std::string& path);
  void read_yaml(const std::string& text, const std::string& place);
  void read_flat(const std::string& json, const std::string& place, OptionRow::Source source);

  std::string section_;
  std::deque<OptionRow> rows_;  // references stay valid while rows are added
  struct RefusedPath {
    std::string path, switch_key;
    std::vector<std::string> harmless;
    std::string because;
  };
  std::vector<std::pair<std::string, std::string>> ignored_paths_;
  std::vector<RefusedPath> refused_paths_;
  std::vector<std::string> problems_, notes_, config_files_;
};

// An option whose value differs between two tables; "(no such option)" where one lacks it.
struct OptionDifference {
  std::string name, before, after;
};
std::vector<OptionDifference> differences(const OptionTable& before, const OptionTable& after);

// Asks for OptionTable::list() instead of help for people.
inline constexpr const char* kHelpAsList = "--help=list";
// True when the arguments ask for help: --help, -h or kHelpAsList before any `--`.
bool wants_help(const std::vector<std::string>& arguments);

// True when both words say the same: the same number, or the same text in any case.
bool same_word(const std::string& a, const std::string& b);

// The name with every `_` written `-`.
std::string canonical_option(std::string_view name);

}  // namespace bloomery
