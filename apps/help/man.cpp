// `bloomery man`: one page for all commands, in the language of man(7).
#include "apps/bloomery.h"
#include "apps/help/help.h"
#include "apps/help/pages.h"
#include "apps/help/topics.h"
#include "base/error.h"
#include "build_config.h"
#include "config/option_table.h"

namespace bloomery {
namespace {

// Long lists of words may be cut behind a bar.
std::string breakable(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != text.npos; at += 3) {
    text.insert(at + 1, "\\:");
  }
  return text;
}

// A text as roff prints it: hyphens that can be copied, no control lines.
std::string roff(const std::string& text) {
  std::string safe = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char letter : text) {
    safe += letter == '\\' ? "\\e" : letter == '-' ? "\\-" : std::string(1, letter);
  }
  return safe;
}

bool is_other_name(const CommandPage& page) { return page.summary.starts_with("Same as"); }

void write_command(const CommandPage& page, std::ostream& out) {
  out << ".SH BLOOMERY " << roff(page.path) << "\n" << roff(page.summary) << "\n";
  if (is_other_name(page)) {
    return;
  }
  if (!page.usage.empty()) {
    out << ".PP\n.nf\n";
    for (const std::string& line : page.usage) {
      out << roff(line) << '\n';
    }
    out << ".fi\n";
  }
  for (const OptionLine& option : page.options) {
    if (!option.of.empty()) {
      continue;  // another spelling, which the text names
    }
    out << ".TP\n.B " << roff(option.flag) << (option.takes.empty() ? "" : " \\fI")
        << breakable(roff(option.takes)) << (option.takes.empty() ? "" : "\\fR") << '\n'
        << roff(option.help) << '\n';
  }
}

}  // namespace

int man(const Arguments& arguments, std::ostream& out) {
  if (wants_help(arguments)) {
    out << "usage: bloomery man\n\nThe manual page, for `man -l` or a folder of pages:\n"
           "bloomery man > bloomery.1 && man -l bloomery.1\n";
    return kFinished;
  }
  check(arguments.empty(), "`bloomery man` takes no arguments");
  const CommandPage program = read_pages();
  out << ".TH BLOOMERY 1 \"\" \"bloomery " << build::version << "\" \"User Commands\"\n"
      << ".SH NAME\nbloomery \\- train large language models\n"
      << ".SH SYNOPSIS\n.B bloomery\n[\\-q|\\-v] \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
      << ".SH DESCRIPTION\nResults go to standard output, messages to standard error. "
         "In names of options \\- and _ are the same letter. The last of repeated options counts. "
         "\\-\\-config FILE reads options from a file. \\-q prints warnings and errors only, "
         "\\-v prints more detail. NO_COLOR in the environment turns colours off, PAGER names "
         "the program that shows long help.\n"
      << ".SH COMMANDS\n";
  for (const CommandPage& page : program.commands) {
    out << ".TP\n.B " << roff(page.path) << '\n' << roff(page.summary) << '\n';
  }
  for (const CommandPage* page : all_pages(program)) {
    if (!page->path.empty()) {
      write_command(*page, out);
    }
  }
  out << ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : exit_codes()) {
    out << ".TP\n.B " << code << '\n' << roff(meaning) << '\n';
  }
  return kFinished;
}

}  // namespace bloomery
