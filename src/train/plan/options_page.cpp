#include "train/plan/options_page.h"

#include <algorithm>
#include <set>
#include <sstream>

namespace bloomery {
namespace {

std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) {
    text.insert(at, "\\");
  }
  return text;
}

std::string harmless(const OptionRow& row) {
  std::string words;
  for (const std::string& word : row.harmless_words) {
    words += (words.empty() ? " (`" : ", `") + word + "`";
  }
  return words.empty() ? "" : words + " is accepted)";
}

// `spelling` is one of the row's flags.
std::string status(const OptionRow& row, const std::string& spelling) {
  if (!row.ignored_because.empty()) {
    return "no effect | " + cell(row.ignored_because);
  }
  if (!row.refused_because.empty()) {
    return "refused | " + cell(row.refused_because) + harmless(row);
  }
  const auto flag = std::ranges::find(row.flags, spelling, &OptionRow::Spelling::text);
  return "works | " + cell(row.help_of(flag == row.flags.end() ? row.flags.front() : *flag));
}

constexpr const char* kHead =
    "# Options of `bloomery pretrain`\n\n"
    "Written by the program from its option table; a test fails when this page is out of date or a "
    "flag is missing\n(`BLOOMERY_WRITE_DOCS=1 ctest -R train` writes it anew).\n\n"
    "**works**: the option means what it means in Megatron-DeepSpeed. **no effect**: accepted with "
    "a note, because it cannot\nchange results. **refused**: an error with the reason, "
    "except for the value that changes nothing.\n"
    "`-` and `_` are the same letter in names. The last of repeated options counts, with a "
    "note. `--config FILE` reads options from\nJSON (`{\"num-layers\": 12}`) or YAML "
    "(`num-layers: 12`); flags override the file.\n";

}  // namespace

std::string options_page(const OptionTable& table, const std::string& flags,
                         const OptionTable& finetune) {
  std::string page = kHead;
  std::set<std::string> listed;
  std::istringstream lines(flags);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) {
      page += "\n" + line + "\n\n| flag | here | |\n| --- | --- | --- |\n";
    } else if (line.starts_with("--")) {
      const OptionRow& row = table.row(line.substr(2));
      listed.insert(row.name);
      page += "| `" + line + "` | " + status(row, canonical_option(line.substr(2))) + " |\n";
    }
  }
  const auto list_own = [&](const std::string& title, const OptionTable& own) {
    page += "\n## " + title + "\n\n| flag | | default |\n| --- | --- | --- |\n";
    for (const OptionRow& row : own.rows()) {
      if (row.has_meaning() && listed.insert(row.name).second) {
        const bool off = row.typed().text != row.name;
        page += "| `--" + row.typed().text + "` | " + cell(row.help_of(row.typed())) + " | " +
                (off ? "off" : cell(row.default_text)) + " |\n";
      }
    }
  };
  list_own("Options of Bloomery's own", table);
  list_own("Further options of `bloomery finetune`", finetune);
  page += "\n## Keys of DeepSpeed's configuration\n\n| key | option |\n| --- | --- |\n";
  for (const OptionRow& row : table.rows()) {
    for (const OptionRow::Spelling& path : row.deepspeeds) {
      page += "| `" + path.text + "` | `--" + row.name + (path.implies ? " " + *path.implies : "") +
              "`" +
              (row.deepspeed_overrules ? ", over a flag"
               : row.flag_overrules    ? ", unless a flag says it"
                                       : "") +
              " |\n";
    }
  }
  return page;
}

}  // namespace bloomery
