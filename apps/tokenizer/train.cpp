// `bloomery tokenizer train`.
#include <unistd.h>

#include <chrono>
#include <iostream>

#include "apps/tokenizer/tokenizer.h"
#include "base/error.h"
#include "base/stop_signals.h"
#include "config/option_table.h"
#include "data/preprocess/progress.h"
#include "data/words/count_words.h"
#include "tokenizer/train/tokenizer_files.h"

namespace bloomery {
namespace {

using Clock = std::chrono::steady_clock;

struct TrainOptions {
  WordInputOptions input;
  BpeTrainingOptions training;
  SplitPattern pattern = SplitPattern::gpt2;
  std::string output;
};

void describe(OptionTable& t, TrainOptions& o) {
  describe(t, o.input);
  t.section("vocabulary");
  t.add("vocab-size", o.training.vocab_size, "Tokens, special ones and the 256 bytes included.",
        between(1, 1 << 24));
  t.add("min-frequency", o.training.min_frequency,
        "A pair that comes less often is not made a token.", at_least(0));
  t.add("special-tokens", o.training.special_tokens, "Take the first ids, in this order.");
  std::vector<std::pair<std::string, SplitPattern>> patterns;
  for (const std::string& name : pattern_names()) {
    patterns.emplace_back(name, *pattern_named(name));
  }
  t.add("pattern", o.pattern, "How a text is divided into words, across which no token reaches.",
        patterns);
  t.section("output");
  t.add("output", o.output,
        "A folder, made if need be, for tokenizer.json, vocab.json and merges.txt.")
      .required();
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// On a terminal one line that counts up.
class MergeProgress {
 public:
  explicit MergeProgress(std::int64_t vocab_size)
      : terminal_(isatty(STDERR_FILENO) == 1), vocab_size_(vocab_size) {}

  void at(std::size_t tokens) {
    if (!terminal_ || tokens % 64 != 0 || seconds_since(drawn_) < 0.2) return;
    drawn_ = Clock::now();
    std::cerr << "\r" << tokens << " of " << vocab_size_ << " tokens\x1B[K" << std::flush;
  }
  void finish() const {
    if (terminal_) std::cerr << "\r\x1B[K";
  }

 private:
  const bool terminal_;
  const std::int64_t vocab_size_;
  Clock::time_point drawn_ = Clock::now();
};

int stopped() {
  std::cerr << "bloomery: stopped by a signal; nothing was written" << std::endl;
  return StopSignals::exit_code();
}

void report_words(const WordInputSummary& input, const WordInputOptions& options, double seconds) {
  std::cerr << "Read " << size_text(static_cast<double>(input.bytes)) << " in " << seconds << " s ("
            << size_text(static_cast<double>(input.bytes) / seconds) << "/s): " << input.lines
            << " good lines, " << input.bad_lines << " bad lines skipped, " << input.words.size()
            << " different words" << std::endl;
  if (input.forgotten_up_to > 0) {
    std::cerr << "note: there were more than --max-words " << options.max_words
              << " words; those that came up to " << input.forgotten_up_to
              << " times were forgotten on the way" << std::endl;
  }
  check(input.words.size() > 0, "the input has no text to learn from");
}

}  // namespace

int tokenizer_train(const Arguments& arguments, std::ostream& out) {
  TrainOptions options;
  OptionTable table;
  describe(table, options);
  if (wants_help(arguments)) {
    out << "usage: bloomery tokenizer train --input FILE... --output FOLDER [OPTIONS]\n\n"
        << table.help();
    return 0;
  }
  table.read_flags(arguments);
  table.finish(problems(options.training));
  prepare_folder(options.output);

  const StopSignals signals("stops without a tokenizer");
  const auto go_on = [] { return !StopSignals::came(); };
  const Clock::time_point start = Clock::now();
  WordInputSummary input =
      count_words(options.input, options.pattern,
                  {.messages = std::cerr, .terminal = isatty(STDERR_FILENO) == 1, .go_on = go_on});
  if (input.interrupted) return stopped();
  report_words(input, options.input, seconds_since(start));

  const Clock::time_point counted = Clock::now();
  MergeProgress progress(options.training.vocab_size);
  const TrainedBpe trained = train_bpe(input.words, options.training, [&](std::size_t tokens) {
    progress.at(tokens);
    return go_on();
  });
  progress.finish();
  if (!go_on()) return stopped();
  std::cerr << "Learnt " << trained.merges.size() << " merges in " << seconds_since(counted)
            << " s: " << trained.tokens.size() << " tokens" << std::endl;
  if (static_cast<std::int64_t>(trained.tokens.size()) < options.training.vocab_size) {
    std::cerr << "note: no further pair comes --min-frequency " << options.training.min_frequency
              << " times; the vocabulary is smaller than --vocab-size "
              << options.training.vocab_size << std::endl;
  }
  write_tokenizer(options.output, trained, options.pattern);
  std::cerr << "Wrote tokenizer.json, vocab.json and merges.txt to " << options.output << std::endl;
  return 0;
}

}  // namespace bloomery
