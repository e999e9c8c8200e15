#include "apps/bloomery.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string_view>

#include "apps/commands.h"
#include "apps/help/topics.h"
#include "apps/launch/options.h"
#include "base/build_number.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/terminal.h"
#include "base/wrap.h"
#include "build_config.h"
#include "comm/host_group.h"
#include "config/nearest.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

// Scripts of Megatron's tools keep working: tools/preprocess_data.py is preprocess_data.
Arguments without_script_spelling(Arguments arguments) {
  constexpr std::string_view kEnding = ".py";
  for (const char* script : {"tasks/main.py", "tasks/main"}) {  // whose own name says nothing
    if (!arguments.empty() && arguments[0].ends_with(script)) {
      arguments[0] = "tasks_main";
    }
  }
  if (!arguments.empty() && arguments[0].ends_with(kEnding)) {
    std::string& name = arguments[0];
    name.erase(name.size() - kEnding.size());
    name.erase(0, name.rfind('/') + 1);  // npos + 1 is 0
  }
  return arguments;
}

// Messages may quote damaged files: bytes that are no text, or that a terminal would obey, are
// shown by their numbers.
std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t valid = valid_utf8_prefix(text);
    for (const char c : text.substr(0, valid)) {
      const auto byte = static_cast<unsigned char>(c);
      const bool control = (byte < ' ' && c != '\n' && c != '\t') || byte == 0x7F;
      shown += control ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
    }
    text.remove_prefix(valid);
    if (!text.empty()) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
      text.remove_prefix(1);
    }
  }
  return shown;
}

// Takes -q and -v out of the arguments: they belong to the program, wherever they stand.
LogLevel take_verbosity(Arguments& arguments) {
  LogLevel level = LogLevel::info;
  auto end = std::find(arguments.begin(), arguments.end(), "--");
  const auto command = std::find_if_not(arguments.begin(), end, is_verbosity);
  if (command != end && *command == "launch") {  // what its ranks run has flags of its own
    const Arguments words(command + 1, arguments.end());
    end = command + 1 + static_cast<std::ptrdiff_t>(start_of_command(words));
  }
  const auto kept = std::remove_if(arguments.begin(), end, [&](const std::string& argument) {
    if (is_verbosity(argument)) {
      level = argument == "-q" || argument == "--quiet" ? LogLevel::warning : LogLevel::debug;
    }
    return is_verbosity(argument);
  });
  arguments.erase(kept, end);
  return level;
}

}  // namespace

bool is_verbosity(const std::string& word) {
  return word == "-q" || word == "--quiet" || word == "-v" || word == "--verbose";
}

bool is_bloomery_command(const Arguments& arguments) {
  const Arguments plain = without_script_spelling(arguments);
  return !plain.empty() && std::ranges::any_of(all_commands(), [&](const Command& command) {
    return command.name == plain[0];
  });
}

std::string suggested_command(const std::string& word) {
  std::vector<std::string> names;
  for (const Command& command : all_commands()) {
    names.push_back(command.name);
  }
  return suggestion(word, names);
}

int dispatch_bloomery(const Arguments& arguments, std::ostream& out) {
  return dispatch("bloomery", all_commands(), without_script_spelling(arguments), out,
                  program_page);
}

int run_bloomery(const Arguments& given, std::ostream& out, std::ostream& errors) noexcept {
  const auto say = [&errors](const std::string& text) {
    const std::string line = "bloomery: " + printable(text);
    const bool shown = &errors == &std::cerr && is_terminal(STDERR_FILENO);
    errors << (shown ? wrapped_lines(line, terminal_columns(STDERR_FILENO)) : line) << '\n';
  };
  try {
    Arguments arguments = given;
    const LogThreshold threshold(take_verbosity(arguments));
    if (!arguments.empty() && arguments[0] == "--version") {
      out << "bloomery " << build::version << (build::cuda ? " (CUDA and CPU)" : " (CPU)")
          << ", build " << hash_text(build_number()) << '\n';
      return kFinished;
    }
    const int code = dispatch_bloomery(arguments, out);
    if (!out.flush()) {
      throw std::runtime_error("the output could not be written: the disk or the reader is gone");
    }
    return code;
  } catch (const RankFailure& failure) {
    say(failure.what());
    return failure.mistake ? kBadInput : kFailed;
  } catch (const Error& error) {
    say(error.what());
    return kBadInput;
  } catch (const std::bad_alloc&) {
    say("failed: not enough memory for what was asked");
    return kFailed;
  } catch (const std::exception& error) {
    say(concat("failed: ", error.what()));
    return kFailed;
  }
}

}  // namespace bloomery
