// `bloomery tokenizer train`.
#include <chrono>
#include <iostream>

#include "apps/common/command_line.h"
#include "apps/common/progress_line.h"
#include "apps/tokenizer/tokenizer.h"
#include "base/error.h"
#include "base/number_text.h"
#include "base/stop_signals.h"
#include "text/words/count_words.h"
#include "tokenizer/train/trained_files.h"

namespace bloomery {
namespace {

using Clock = std::chrono::steady_clock;

struct TrainOptions {
  WordInputOptions input;
  BpeTrainingOptions training;
  SplitPattern pattern = SplitPattern::gpt2;
  std::string output;
  bool overwrite = false;
};

void describe(OptionTable& t, TrainOptions& o) {
  describe(t, o.input);
  t.section("vocabulary");
  t.add("vocab-size", o.training.vocab_size,
        "Vocabulary size, including special tokens and the 256 bytes.", between(1, 1 << 24));
  t.add("min-frequency", o.training.min_frequency, "Minimum frequency of a pair to become a token.",
        at_least(0));
  t.add("special-tokens", o.training.special_tokens,
        "Special tokens; they take the first ids, in this order.");
  std::vector<std::pair<std::string, SplitPattern>> patterns;
  for (const std::string& name : pattern_names()) {
    patterns.emplace_back(name, *pattern_named(name));
  }
  t.add("pattern", o.pattern,
        "Pre-tokenization: how text is split into words; tokens do not cross words.", patterns);
  t.section("output");
  t.add("output", o.output, "Output folder for tokenizer.json, vocab.json and merges.txt.")
      .required();
  t.add("overwrite", o.overwrite, "Replace an existing tokenizer.");
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int stopped() {
  std::cerr << "bloomery: stopped by " << signal_name(StopSignals::signal())
            << "; nothing was written" << std::endl;
  return StopSignals::exit_code();
}

void report_words(const WordInputSummary& input, const WordInputOptions& options, double seconds) {
  messages() << "Read " << size_text(static_cast<double>(input.bytes)) << " in "
             << fixed(seconds, 2) << " s (" << size_text(static_cast<double>(input.bytes) / seconds)
             << "/s): " << counted(input.lines, "good line") << ", "
             << counted(input.bad_lines, "bad line") << " skipped, "
             << counted(static_cast<std::int64_t>(input.words.size()), "distinct word")
             << std::endl;
  if (input.forgotten_up_to > 0) {
    messages() << "note: there were more than --max-words " << options.max_words
               << " distinct words; those that occurred up to " << input.forgotten_up_to
               << " times were dropped" << std::endl;
  }
  check(input.words.size() > 0,
        "the input has no text to train on: give text with one document "
        "per line, or JSON lines, whose key --json-keys names");
}

}  // namespace

int tokenizer_train(const Arguments& arguments, std::ostream& out) {
  TrainOptions options;
  OptionTable table;
  describe(table, options);
  if (!read_options(table, arguments, out,
                    "usage: bloomery tokenizer train --input FILE... --output FOLDER "
                    "[OPTIONS]\n\nTrains a byte-level BPE tokenizer.\n\nexample:\n  bloomery "
                    "tokenizer train --input my.txt --vocab-size 8192 --output run/tokenizer\n",
                    [&] { return problems(options.training); })) {
    return 0;
  }
  if (!options.overwrite) {
    const std::filesystem::path folder = options.output;
    refuse_to_overwrite({folder / "tokenizer.json", folder / "vocab.json", folder / "merges.txt"});
  }
  check_folder(options.output);

  const StopSignals signals("stops without writing a tokenizer");
  const auto go_on = [] { return !StopSignals::came(); };
  const Clock::time_point start = Clock::now();
  WordInputSummary input =
      count_words(options.input, options.pattern,
                  {.messages = messages(), .terminal = messages_on_terminal(), .go_on = go_on});
  if (input.interrupted) return stopped();
  report_words(input, options.input, seconds_since(start));

  const Clock::time_point read = Clock::now();
  ProgressLine progress("tokens");
  const TrainedBpe trained = train_bpe(input.words, options.training, [&](std::size_t tokens) {
    progress.at(static_cast<std::int64_t>(tokens), options.training.vocab_size);
    return go_on();
  });
  progress.finish();
  if (!go_on()) return stopped();
  messages() << "Learned " << counted(static_cast<std::int64_t>(trained.merges.size()), "merge")
             << " in " << fixed(seconds_since(read), 2)
             << " s: " << counted(static_cast<std::int64_t>(trained.tokens.size()), "token")
             << std::endl;
  if (static_cast<std::int64_t>(trained.tokens.size()) < options.training.vocab_size) {
    messages() << "note: the text has too few words for --vocab-size "
               << options.training.vocab_size << ": no further pair occurs "
               << options.training.min_frequency << " times (--min-frequency)" << std::endl;
  }
  write_tokenizer(options.output, trained, options.pattern);
  messages() << "Wrote tokenizer.json, vocab.json and merges.txt to " << options.output
             << std::endl;
  return 0;
}

}  // namespace bloomery
