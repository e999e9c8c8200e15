#include "apps/preprocess/preprocess.h"

#include <chrono>
#include <iostream>

#include "apps/common/command_line.h"
#include "base/number_text.h"
#include "base/stop_signals.h"
#include "corpus/preprocess/preprocess.h"
#include "tokenizer/load.h"
#include "tokenizer/tokenizer_hash.h"

namespace bloomery {
namespace {

void print_summary(const PreprocessSummary& summary, double seconds) {
  for (const PreprocessOutput& output : summary.outputs) {
    messages() << "Wrote " << output.prefix
               << ".bin and .idx: " << counted(output.documents, "document") << ", "
               << counted(output.tokens, "token") << " of " << name(summary.type) << '\n';
    if (output.documents == 0) {
      messages() << "warning: " << output.prefix << " has no documents" << '\n';
    }
  }
  messages() << "Read " << size_text(static_cast<double>(summary.bytes)) << " in "
             << fixed(seconds, 2) << " s ("
             << size_text(static_cast<double>(summary.bytes) / seconds)
             << "/s): " << counted(summary.lines, "good line") << ", "
             << counted(summary.bad_lines, "bad line") << " skipped, "
             << counted(summary.empty_texts, "empty text") << " skipped" << std::endl;
}

}  // namespace

int preprocess_command(const Arguments& arguments, std::ostream& out) {
  PreprocessOptions options;
  TokenizerOptions tokenizer_options;
  OptionTable table;
  describe(table, options);
  describe(table, tokenizer_options);
  if (!read_options(
          table, arguments, out,
          "usage: bloomery preprocess --input FILE... --output-prefix PREFIX "
          "[OPTIONS]\n\nTokenizes text into a .bin/.idx corpus.\n\nexample:\n  bloomery preprocess "
          "--input my.txt --output-prefix run/my --tokenizer run/tokenizer --append-eod\n",
          [&] { return problems(options); })) {
    return 0;
  }

  if (!options.overwrite) {
    for (const std::string& key : options.json_keys) {
      // A .bin without its .idx is no corpus: a run was killed between their two names.
      refuse_to_overwrite({corpus_prefix(options, key) + ".idx"});
    }
  }
  const auto start = std::chrono::steady_clock::now();
  const auto tokenizer = load_tokenizer(tokenizer_options);
  options.tokenizer_name = tokenizer_name(tokenizer_options);
  const StopSignals signals("stops and removes its output");
  const PreprocessSummary summary =
      preprocess(options, encode_options(options, tokenizer_options.type), *tokenizer,
                 {.messages = messages(), .terminal = messages_on_terminal(), .go_on = [] {
                    return !StopSignals::came();
                  }});
  if (summary.interrupted) {
    std::cerr << "bloomery: stopped by " << signal_name(StopSignals::signal())
              << "; nothing was written" << std::endl;
    return StopSignals::exit_code();
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  print_summary(summary, elapsed.count());
  return 0;
}

}  // namespace bloomery
