// A pass over the lines of files, as every tool makes it: the engine, with progress, bad lines
// counted and the first ones named, and an end where a person asks for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/input/document_lines.h"
#include "text/lines/line_engine.h"
#include "text/lines/line_options.h"
#include "text/lines/line_progress.h"

namespace bloomery {

struct LineTotals {
  std::int64_t lines = 0;  // good ones
  std::int64_t bad_lines = 0;
  std::uint64_t bytes = 0;  // of text read
};

class LineRun {
 public:
  // The options and what the caller refers to must stay.
  LineRun(const LineOptions& options, const LineCaller& caller, std::vector<std::string> files);

  const std::vector<std::string>& files() const { return files_; }
  // For readers; `keys_alone`: of Parquet files no columns but those of --json-keys.
  LineReaderOptions reader_options(bool keys_alone = false) const;
  // For sources, so that they end when the run does.
  const std::atomic<bool>* stop() const { return &stop_; }
  const LineTotals& totals() const { return totals_; }
  LineProgress& progress() { return progress_; }
  // The share of the input that was taken; 0: not known.
  double share() const;

  // `make_worker(number)` gives a function of (chunk, Result&) for a thread. A Result is a
  // LineCounts with more; it is used again, so the function clears it first. `take(stream, chunk,
  // result)` has them in the order of each stream, `ended(stream)` follows the last one. False when
  // go_on ended it. With `strict`, the first bad line in the order of taking is an Error.
  template <class Result, class MakeWorker, class Take>
  bool run(std::vector<ChunkSource*> streams, const MakeWorker& make_worker, const Take& take,
           const std::function<void(std::size_t)>& ended = {}, int streams_at_once = 1);

 private:
  void check_keys(const LineChunk& chunk) const;
  void before_take(std::size_t stream, const LineChunk& chunk, const LineCounts& counts);
  void after_take(const LineChunk& chunk, const LineCounts& counts);
  [[noreturn]] void rethrow_named(const LineChunk& chunk) const;

  const LineOptions& options_;
  const LineCaller caller_;
  const std::vector<std::string> files_;
  const std::uint64_t total_bytes_;
  std::atomic<bool> stop_ = false;
  LineProgress progress_;
  LineTotals totals_;
  std::size_t reported_ = 0;
  std::vector<std::uint64_t> positions_;  // of each stream, in its files
};

template <class Result, class MakeWorker, class Take>
bool LineRun::run(std::vector<ChunkSource*> streams, const MakeWorker& make_worker,
                  const Take& take, const std::function<void(std::size_t)>& ended,
                  int streams_at_once) {
  positions_.resize(std::max(positions_.size(), streams.size()));
  const LineEngineOptions engine{.streams = std::move(streams),
                                 .streams_at_once = streams_at_once,
                                 .workers = num_workers(options_),
                                 .stop = &stop_};
  std::vector<Result> results(num_slots(engine));
  return run_line_engine(
      engine, {.make_worker = [&](std::size_t worker) -> ChunkWork {
                 return [&, work = make_worker(worker)](const LineChunk& chunk, std::size_t slot) {
                   check_keys(chunk);
                   try {
                     work(chunk, results[slot]);
                   } catch (const Error&) {
                     rethrow_named(chunk);
                   }
                 };
               },
               .take =
                   [&](std::size_t stream, const LineChunk& chunk, std::size_t slot) {
                     before_take(stream, chunk, results[slot]);
                     take(stream, chunk, results[slot]);
                     after_take(chunk, results[slot]);
                   },
               .ended = ended,
               .go_on = caller_.go_on});
}

}  // namespace bloomery
