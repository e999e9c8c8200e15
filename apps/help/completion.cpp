// `bloomery completion SHELL`: the words that can come next, written out for a shell.
#include <map>

#include "apps/bloomery.h"
#include "apps/help/help.h"
#include "apps/help/pages.h"
#include "base/error.h"
#include "config/nearest.h"
#include "config/option_table.h"

namespace bloomery {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

std::vector<std::string> next_words(const CommandPage& page) {
  std::vector<std::string> words;
  for (const CommandPage& below : page.commands) {
    words.push_back(below.name());
  }
  for (const OptionLine& option : page.options) {
    words.push_back(option.flag);
  }
  return words;
}

// A text within single quotes of any of the shells.
std::string quoted(const std::string& text) {
  std::string safe;
  for (const char letter : text) {
    safe += letter == '\'' ? "\u2019" : letter == '\\' ? "/" : std::string(1, letter);
  }
  return "'" + safe + "'";
}

// The lines that bash and zsh share: from the words before the cursor to $words, those that may
// come next. `command` is the way through the commands, "bench ops".
void write_cases(const CommandPage& program, std::ostream& out) {
  out << "  case \" $command \" in\n";
  for (const CommandPage& page : program.commands) {
    if (page.commands.empty()) {  // what follows is an argument
      out << "  " << quoted(" " + page.path + " ") << "*) command=" << quoted(page.path) << " ;;\n";
    }
  }
  out << "  esac\n  case \"$command\" in\n";
  for (const CommandPage* page : all_pages(program)) {
    out << "  " << quoted(page->path) << ")\n    words=" << quoted(joined(next_words(*page)))
        << "\n";
    std::string choices;
    for (const OptionLine& option : page->options) {
      if (!option.choices().empty()) {
        choices +=
            "    " + option.flag + ") words=" + quoted(joined(option.choices())) + " values=1 ;;\n";
      } else if (!option.takes.empty()) {
        choices += "    " + option.flag + ") words= values=1 ;;\n";
      }
    }
    if (!choices.empty()) {
      out << "    case \"$previous\" in\n" << choices << "    esac\n";
    }
    out << "    ;;\n";
  }
  out << "  esac\n";
}

void write_bash(const CommandPage& program, std::ostream& out) {
  out << "# Completion of bloomery in bash.\n"
         "_bloomery() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local command= words= values= i\n"
         "  for ((i = 1; i < COMP_CWORD && i < 3; i++)); do\n"
         "    [[ ${COMP_WORDS[i]} == -* ]] && break\n"
         "    command=\"$command ${COMP_WORDS[i]}\"\n"
         "  done\n"
         "  command=${command# }\n";
  write_cases(program, out);
  out << "  COMPREPLY=()\n"
         "  if [[ -n $values || $current == -* || $words != -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  fi\n"
         "}\n"
         "complete -o default -F _bloomery bloomery\n";
}

void write_zsh(const CommandPage& program, std::ostream& out) {
  out << "#compdef bloomery\n# Completion of bloomery in zsh.\n"
         "local current=${words[CURRENT]} previous=${words[CURRENT-1]} command= values= i\n"
         "for ((i = 2; i < CURRENT && i < 4; i++)); do\n"
         "  [[ ${words[i]} == -* ]] && break\n"
         "  command=\"$command ${words[i]}\"\n"
         "done\n"
         "command=${command# }\n"
         "_bloomery_next() {\n"
         "  local words=\n";
  write_cases(program, out);
  out << "  if [[ -n $words && ( -n $values || $current == -* || $words != -* ) ]]; then\n"
         "    compadd -- ${=words}\n"
         "  else\n"
         "    _files\n"
         "  fi\n"
         "}\n"
         "_bloomery_next\n";
}

void write_fish(const CommandPage& program, std::ostream& out) {
  out << "# Completion of bloomery in fish.\n"
         "function __bloomery_at\n"
         "  set -l path\n"
         "  for word in (commandline -opc)[2..-1]\n"
         "    string match -q -- '-*' $word; and break\n"
         "    set -a path $word\n"
         "  end\n"
         "  test \"$path\" = \"$argv[1]\"; and return 0\n"
         "  test (count $argv) -gt 1; and string match -q -- \"$argv[1] *\" \"$path\"\n"
         "end\n"
         "complete -c bloomery -f -n \"__bloomery_at ''\"\n";
  for (const CommandPage* page : all_pages(program)) {
    for (const CommandPage& below : page->commands) {
      out << "complete -c bloomery -f -n \"__bloomery_at '" << page->path << "'\" -a "
          << below.name() << " -d " << quoted(below.summary) << '\n';
    }
    for (const OptionLine& option : page->options) {
      out << "complete -c bloomery -n \"__bloomery_at '" << page->path << "' below\" -l "
          << option.flag.substr(2) << (option.takes.empty() ? "" : " -r");
      if (!option.choices().empty()) {
        out << " -f -a " << quoted(joined(option.choices()));
      }
      out << " -d " << quoted(option.help.substr(0, option.help.find(". "))) << '\n';
    }
  }
}

}  // namespace

int completion(const Arguments& arguments, std::ostream& out) {
  const std::map<std::string, void (*)(const CommandPage&, std::ostream&)> shells = {
      {"bash", write_bash}, {"fish", write_fish}, {"zsh", write_zsh}};
  if (wants_help(arguments) || arguments.empty()) {
    out << "usage: bloomery completion bash|zsh|fish\n\n"
           "bash: source <(bloomery completion bash)\n"
           "zsh:  bloomery completion zsh > a folder of $fpath/_bloomery\n"
           "fish: bloomery completion fish | source\n";
    return kFinished;
  }
  const auto found = shells.find(arguments[0]);
  check(found != shells.end() && arguments.size() == 1,
        "completion is for bash, zsh or fish, not '", arguments[0], "'",
        suggestion(arguments[0], {"bash", "zsh", "fish"}));
  found->second(read_pages(), out);
  return kFinished;
}

}  // namespace bloomery
