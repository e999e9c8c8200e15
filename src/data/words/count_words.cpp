#include "data/words/count_words.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <iterator>
#include <memory>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/thread_pool.h"
#include "config/option_table.h"
#include "data/input/document_lines.h"
#include "data/input/input_files.h"
#include "data/preprocess/progress.h"
#include "data/words/limited_reader.h"

namespace bloomery {
namespace {

constexpr int kMostWorkers = 64;  // one reads at a time, and cannot feed more than about this many

// What one thread counts.
struct Worker {
  Worker(const std::vector<std::string>& keys, std::size_t max_line_bytes)
      : lines(keys, max_line_bytes) {}

  DocumentLines lines;
  WordCounts words;
  LineCounts counts;
};

class Counting {
 public:
  Counting(const WordInputOptions& options, SplitPattern pattern, const WordInputCaller& caller)
      : options_(options),
        pattern_(pattern),
        caller_(caller),
        files_(input_files(options.input)),
        reader_(files_, options.input_format, static_cast<std::size_t>(options.max_document_bytes),
                {static_cast<std::uint64_t>(options.limit_bytes),
                 static_cast<std::uint64_t>(options.limit_documents)},
                &stop_),
        progress_(caller.messages, {caller.terminal, options.log_interval, total_bytes(files_)}) {
    const int cores = usable_cores();
    const int workers =
        std::min({options.workers > 0 ? options.workers : cores, cores, kMostWorkers});
    for (int i = 0; i < workers; ++i) {
      workers_.push_back(std::make_unique<Worker>(
          options.json_keys, static_cast<std::size_t>(options.max_document_bytes)));
    }
  }

  WordInputSummary run() {
    while (!ended_ && !stop_) {
      count_until_cut();
      if (failure_ != nullptr) std::rethrow_exception(failure_);
      gather_bad_lines();
      add_up();
      summary_.forgotten_up_to =
          std::max(summary_.forgotten_up_to,
                   summary_.words.keep_most_frequent(static_cast<std::size_t>(options_.max_words)));
    }
    progress_.finish();
    report_bad_lines();
    return std::move(summary_);
  }

 private:
  // All workers count; the caller's thread waits and asks whether to go on.
  void count_until_cut() {
    bytes_until_cut_ = kBytesBetweenCuts;
    running_ = workers_.size();
    std::vector<std::jthread> threads;
    for (const auto& worker : workers_) {
      threads.emplace_back([this, &worker] { work(*worker); });
    }
    std::unique_lock lock(mutex_);
    while (
        !finished_.wait_for(lock, std::chrono::milliseconds(100), [&] { return running_ == 0; })) {
      if (!stop_ && !caller_.go_on()) {
        summary_.interrupted = true;
        stop_ = true;
      }
    }
  }

  void work(Worker& worker) {
    try {
      LineChunk chunk;
      while (next(chunk)) {
        worker.lines.for_each(chunk, [&](const DocumentLine& line) {
          worker.counts.add(chunk, line);
          for (const std::string_view text : line.texts) worker.words.add_text(pattern_, text);
        });
        if (options_.strict && worker.counts.bad_lines > 0) stop_ = true;
        done(chunk, worker);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (failure_ == nullptr) failure_ = std::current_exception();
      stop_ = true;
    }
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) finished_.notify_one();
  }

  bool next(LineChunk& chunk) {
    const std::lock_guard lock(reading_);
    if (stop_ || ended_ || bytes_until_cut_ == 0) return false;
    if (!reader_.next(chunk)) {
      ended_ = true;
      return false;
    }
    bytes_until_cut_ -= std::min<std::uint64_t>(bytes_until_cut_, chunk.used);
    return true;
  }

  void done(const LineChunk& chunk, Worker& worker) {
    const std::lock_guard lock(mutex_);
    if (chunk.first_of_file) progress_.opened(shown_name(files_[chunk.file]));
    const std::uint64_t bytes = chunk.used + chunk.overlong_bytes;
    summary_.bytes += bytes;
    position_ = std::max(position_, chunk.input_position);
    summary_.lines += worker.counts.lines;
    progress_.advance(worker.counts.lines, bytes, position_);
    worker.counts.lines = 0;
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

  // Workers keep their own first ones; the first of all are among them.
  void gather_bad_lines() {
    for (const auto& worker : workers_) {
      LineCounts& counts = worker->counts;
      summary_.bad_lines += counts.bad_lines;
      std::ranges::move(counts.first_bad_lines, std::back_inserter(bad_lines_));
      counts = {};
    }
    std::ranges::sort(bad_lines_, {},
                      [](const BadLine& line) { return std::pair(line.file, line.offset); });
    if (bad_lines_.size() > kBadLinesReported) bad_lines_.resize(kBadLinesReported);
  }

  void report_bad_lines() {
    for (const BadLine& line : bad_lines_) {
      const std::string text = line.text(files_);
      check(!options_.strict, text, "; --strict stops here, nothing was written");
      progress_.message("bad line: " + text);
    }
  }

  const WordInputOptions& options_;
  const SplitPattern pattern_;
  const WordInputCaller& caller_;
  const std::vector<std::string> files_;
  std::atomic<bool> stop_ = false;
  std::mutex reading_;  // of what follows
  LimitedReader reader_;
  std::uint64_t bytes_until_cut_ = 0;
  bool ended_ = false;

  std::mutex mutex_;  // of what follows
  std::condition_variable finished_;
  std::size_t running_ = 0;
  std::exception_ptr failure_;
  std::uint64_t position_ = 0;  // in the input
  PreprocessProgress progress_;
  WordInputSummary summary_;

  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<BadLine> bad_lines_;
};

}  // namespace

void describe(OptionTable& t, WordInputOptions& o) {
  t.section("input");
  t.add("input", o.input,
        "Files and patterns ('data/*.jsonl.gz'); - is standard input. gzip, xz and zstd are "
        "recognised by content.")
      .required();
  t.add(
      "input-format", o.input_format,
      "What a line is: a JSON object or a document as it is; auto goes by name and content.",
      {{"auto", LineFormat::automatic}, {"jsonl", LineFormat::jsonl}, {"text", LineFormat::text}});
  t.add("json-keys", o.json_keys, "Keys whose strings are documents.").alias("json-key");
  t.add("max-document-bytes", o.max_document_bytes, "A longer line counts as bad.",
        between(1, 1 << 30))
      .alias("max-document-length");
  t.add("strict", o.strict, "Stop at the first bad line instead of counting it.");
  t.add("limit-bytes", o.limit_bytes,
        "Learn from whole lines up to so many bytes of the input, decompressed; 0: all.",
        at_least(0));
  t.add("limit-documents", o.limit_documents,
        "Learn from so many lines of the input that are not blank; 0: all.", at_least(0));
  t.add("max-words", o.max_words,
        "Different words kept in memory, about 260 bytes each. With more, after every 256 MiB of "
        "input, the rarest are forgotten, by count alone.",
        between(1000, 4'000'000'000));
  t.section("running");
  t.add("workers", o.workers, "Threads that count words; 0 takes all cores, more is never used.",
        between(0, 1 << 16))
      .alias("num-threads");
  t.add("log-interval", o.log_interval, "Documents between progress lines.", at_least(1));
}

WordInputSummary count_words(const WordInputOptions& options, SplitPattern pattern,
                             const WordInputCaller& caller) {
  return Counting(options, pattern, caller).run();
}

}  // namespace bloomery
