#include "text/words/count_words.h"

#include <algorithm>
#include <memory>

#include "base/thread_pool.h"
#include "config/option_table.h"
#include "text/input/input_files.h"
#include "text/lines/line_run.h"
#include "text/words/cut_source.h"

namespace bloomery {
namespace {

// What one thread counts.
struct Worker {
  Worker(const std::vector<std::string>& keys, std::size_t max_line_bytes)
      : lines(keys, max_line_bytes) {}

  DocumentLines lines;
  WordCounts words;
};

class Counting {
 public:
  Counting(const WordInputOptions& options, SplitPattern pattern, const LineCaller& caller)
      : options_(options),
        pattern_(pattern),
        run_(options, caller, input_files(options.input)),
        reader_(run_.files(), run_.reader_options(true), run_.stop()),
        beginning_(reader_, {static_cast<std::uint64_t>(options.limit_bytes),
                             static_cast<std::uint64_t>(options.limit_documents)}) {
    for (int i = 0; i < num_workers(options); ++i) {
      workers_.push_back(std::make_unique<Worker>(
          options.json_keys, static_cast<std::size_t>(options.max_document_bytes)));
    }
  }

  WordInputSummary run() {
    while (!beginning_.ended() && !summary_.interrupted) {
      summary_.interrupted = !count_until_cut();
      add_up();
      summary_.forgotten_up_to =
          std::max(summary_.forgotten_up_to,
                   summary_.words.keep_most_frequent(static_cast<std::size_t>(options_.max_words)));
    }
    run_.progress().finish();
    summary_.lines = run_.totals().lines;
    summary_.bad_lines = run_.totals().bad_lines;
    summary_.bytes = run_.totals().bytes;
    return std::move(summary_);
  }

 private:
  bool count_until_cut() {
    beginning_.allow(kBytesBetweenCuts);
    return run_.run<LineCounts>(
        {&beginning_},
        [&](std::size_t number) {
          return [&, worker = workers_[number].get()](const LineChunk& chunk, LineCounts& counts) {
            counts = {};
            worker->lines.for_each(chunk, [&](const DocumentLine& line) {
              counts.add(chunk, line);
              for (const std::string_view text : line.texts) {
                worker->words.add_text(pattern_, text);
              }
            });
          };
        },
        [](std::size_t, const LineChunk&, const LineCounts&) {});
  }

  void add_up() {
    ThreadPool pool(static_cast<int>(workers_.size()));
    pool.for_each(WordCounts::kShards, [&](std::int64_t index) {
      const auto shard = static_cast<std::size_t>(index);
      for (const auto& worker : workers_) {
        summary_.words.shard(shard).add_all(worker->words.shard(shard));
        worker->words.shard(shard) = {};
      }
    });
  }

  const WordInputOptions& options_;
  const SplitPattern pattern_;
  LineRun run_;
  LineReader reader_;
  CutSource beginning_;
  WordInputSummary summary_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace

void describe(OptionTable& t, WordInputOptions& o) {
  describe_lines(t, o, "JSON keys of the text.");
  t.add("limit-bytes", o.limit_bytes,
        "Train on at most this many bytes of the input, decompressed; 0: all.", at_least(0));
  t.add("limit-documents", o.limit_documents,
        "Train on at most this many non-blank lines of the input; 0: all.", at_least(0));
  t.add("max-words", o.max_words,
        "Maximum distinct words in memory, about 260 bytes each. Beyond it the rarest words are "
        "dropped after every 256 MiB of input.",
        between(1000, 4'000'000'000));
  t.section("running");
  describe_workers(t, o);
}

WordInputSummary count_words(const WordInputOptions& options, SplitPattern pattern,
                             const LineCaller& caller) {
  return Counting(options, pattern, caller).run();
}

}  // namespace bloomery
