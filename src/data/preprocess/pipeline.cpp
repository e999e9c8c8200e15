#include "data/preprocess/pipeline.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/thread_pool.h"
#include "data/input/byte_source.h"
#include "data/preprocess/chunk_ring.h"

namespace bloomery {
namespace {

constexpr std::size_t kChunkBytes = 1 << 20;
// Text under way beyond which the reader waits. A chunk is accepted below it, so one line of the
// largest size more may be under way.
constexpr std::size_t kMaxBytesUnderWay = 32 << 20;

// The threads leave signals to the caller's thread, which asks go_on().
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

class Pipeline {
 public:
  Pipeline(const Tokenizer& tokenizer, const PipelineOptions& options, int workers)
      : tokenizer_(tokenizer),
        options_(options),
        ring_(static_cast<std::size_t>(workers) + 4, kMaxBytesUnderWay) {
    const SignalsBlocked blocked;
    try {
      threads_.emplace_back([this] { guarded([this] { read(); }); });
      for (int i = 0; i < workers; ++i) {
        threads_.emplace_back([this] { guarded([this] { encode(); }); });
      }
    } catch (const std::system_error& error) {
      const std::size_t given = threads_.size();
      join();
      throw std::runtime_error(concat("the system gave only ", given, " threads (", error.what(),
                                      "); ask for fewer --workers"));
    }
  }
  ~Pipeline() { join(); }
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  bool run(const PipelineCaller& caller) {
    ChunkSlot* slot = nullptr;
    while (caller.go_on()) {
      const ChunkRing::Wait wait = ring_.wait_for_written(slot);
      if (wait == ChunkRing::Wait::ended) {
        ring_.check_failure();
        return true;
      }
      if (wait == ChunkRing::Wait::timed_out) {
        continue;
      }
      if (slot->lines.first_of_file) {
        caller.opened(options_.files[slot->lines.file]);
      }
      caller.take(slot->encoded);
      ring_.release();
    }
    return false;
  }

 private:
  void join() {
    ring_.stop();
    for (std::thread& thread : threads_) {
      thread.join();
    }
    threads_.clear();
  }

  template <class Body>
  void guarded(const Body& body) {
    try {
      body();
    } catch (...) {
      ring_.stop(std::current_exception());
    }
  }

  void read() {
    const LineReaderOptions how{kChunkBytes, options_.encode.max_line_bytes, options_.format};
    LineReader reader(options_.files, how, &ring_.stopped());
    while (ChunkSlot* slot = ring_.slot_to_fill()) {
      if (!reader.next(slot->lines)) {
        ring_.end();
        return;
      }
      check(slot->lines.format != LineFormat::text || options_.encode.keys.size() == 1,
            options_.files[slot->lines.file],
            " is plain text, where a line is a document and has no keys; give one --json-keys, "
            "which then names the output, or --input-format jsonl");
      ring_.publish();
    }
  }

  void encode() {
    ChunkEncoder encoder(tokenizer_, options_.encode, options_.type);
    while (ChunkSlot* slot = ring_.slot_to_encode()) {
      try {
        encoder.encode(slot->lines, slot->encoded);
      } catch (const Error& error) {  // a text that the tokenizer does not take
        throw Error(concat(shown_name(options_.files[slot->lines.file]), ", ", error.what()));
      }
      ring_.encoded(*slot);
    }
  }

  const Tokenizer& tokenizer_;
  const PipelineOptions& options_;
  ChunkRing ring_;
  std::vector<std::thread> threads_;
};

}  // namespace

bool run_pipeline(const Tokenizer& tokenizer, const PipelineOptions& options,
                  const PipelineCaller& caller) {
  Pipeline pipeline(tokenizer, options, options.workers > 0 ? options.workers : usable_cores());
  return pipeline.run(caller);
}

}  // namespace bloomery
