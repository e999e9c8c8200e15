#include "apps/bloomery.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>

#include "apps/bench/bench.h"
#include "apps/checkpoint/checkpoint.h"
#include "apps/convert/convert.h"
#include "apps/data/data.h"
#include "apps/doctor/doctor.h"
#include "apps/evaluate/evaluate.h"
#include "apps/generate/generate.h"
#include "apps/help/help.h"
#include "apps/launch/launch.h"
#include "apps/parity/parity.h"
#include "apps/pipeline/pipeline.h"
#include "apps/preprocess/preprocess.h"
#include "apps/pretrain/pretrain.h"
#include "apps/report/report.h"
#include "apps/tokenizer/tokenizer.h"
#include "base/error.h"
#include "base/terminal.h"
#include "build_config.h"
#include "comm/host_group.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

std::vector<Command> commands() {
  return {
      {"doctor", "what this machine has, what it lacks, and how to install it", doctor},
      {"bench", "measure this machine and the kernels on it", bench},
      {"preprocess", "turn text into tokenised corpora", preprocess_command},
      {"preprocess_data", "the same, under Megatron's name", preprocess_command},
      {"pretrain", "train a model", pretrain_command},
      {"pretrain_gpt", "the same, under Megatron's name", pretrain_command},
      {"launch", "start a command as several ranks, here and on other machines", launch_command},
      {"generate", "text from a model", generate},
      {"generate_samples_gpt", "the same, under Megatron's name", generate},
      {"report", "the curves of a run as a page for browsers", report},
      {"parity", "whether layouts of ranks train like one rank", parity},
      {"pipeline", "what a schedule of pipeline stages costs, with a picture", pipeline},
      {"tokenizer", "text to token ids and back", tokenizer},
      {"checkpoint", "list, check, compare and remove checkpoints", checkpoint},
      {"evaluate", "perplexity, WikiText, LAMBADA, raw logits of a model", evaluate},
      {"convert", "models between checkpoints and Hugging Face folders", convert},
      {"data", "look at, check, join and split tokenised corpora", data},
      {"merge_datasets", "the same as `data merge`, under Megatron's name", data_merge},
      {"help", "what a command does, and its options", help_command},
      {"completion", "a script that completes words in bash, zsh or fish", completion},
      {"man", "the manual page", man},
  };
}

// Scripts of Megatron's tools keep working: tools/preprocess_data.py is preprocess_data.
Arguments without_script_spelling(Arguments arguments) {
  constexpr std::string_view kEnding = ".py";
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
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  const auto kept = std::remove_if(arguments.begin(), end, [&](const std::string& argument) {
    const bool quiet = argument == "-q" || argument == "--quiet";
    const bool verbose = argument == "-v" || argument == "--verbose";
    level = quiet ? LogLevel::warning : verbose ? LogLevel::debug : level;
    return quiet || verbose;
  });
  arguments.erase(kept, end);
  return level;
}

}  // namespace

bool is_bloomery_command(const Arguments& arguments) {
  const Arguments plain = without_script_spelling(arguments);
  return !plain.empty() && std::ranges::any_of(commands(), [&](const Command& command) {
    return command.name == plain[0];
  });
}

int dispatch_bloomery(const Arguments& arguments, std::ostream& out) {
  return dispatch("bloomery", commands(), without_script_spelling(arguments), out);
}

int run_bloomery(const Arguments& given, std::ostream& out, std::ostream& errors) noexcept {
  try {
    Arguments arguments = given;
    const LogThreshold threshold(take_verbosity(arguments));
    if (!arguments.empty() && arguments[0] == "--version") {
      out << "bloomery " << build::version << (build::cuda ? " (CUDA and CPU)" : " (CPU)") << '\n';
      return kFinished;
    }
    const int code = dispatch_bloomery(arguments, out);
    if (!out.flush()) {
      throw std::runtime_error("the output could not be written: the disk or the reader is gone");
    }
    return code;
  } catch (const RankFailure& failure) {
    errors << "bloomery: " << printable(failure.what()) << '\n';
    return failure.mistake ? kBadInput : kFailed;
  } catch (const Error& error) {
    errors << "bloomery: " << printable(error.what()) << '\n';
    return kBadInput;
  } catch (const std::bad_alloc&) {
    errors << "bloomery: failed: not enough memory for what was asked\n";
    return kFailed;
  } catch (const std::exception& error) {
    errors << "bloomery: failed: " << printable(error.what()) << '\n';
    return kFailed;
  }
}

}  // namespace bloomery
