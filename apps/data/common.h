// What the `data` commands share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/log.h"
#include "base/number_text.h"
#include "corpus/corpus_scan.h"
#include "tokenizer/load.h"

namespace bloomery {

// The tokenizer of the options, or none when they name none.
std::shared_ptr<const Tokenizer> optional_tokenizer(const TokenizerOptions& options);

// Says on the log how far a long pass over a corpus is, every few seconds.
class PassReport {
 public:
  PassReport(const IndexedCorpus& corpus, std::string action);
  // For the functions of corpus/corpus_scan.h; this object must outlive it.
  ScanProgress progress();

 private:
  void add(std::int64_t tokens);

  using Clock = std::chrono::steady_clock;
  Log log_;
  std::string action_;
  double bytes_per_token_, total_bytes_;
  std::atomic<std::int64_t> done_ = 0;
  std::mutex mutex_;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

}  // namespace bloomery
