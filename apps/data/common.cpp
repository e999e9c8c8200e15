#include "apps/data/common.h"

#include <iomanip>
#include <sstream>
#include <utility>

namespace bloomery {

std::shared_ptr<const Tokenizer> optional_tokenizer(const TokenizerOptions& options) {
  return options.path.empty() && options.type.empty() ? nullptr : load_tokenizer(options);
}

PassReport::PassReport(const IndexedCorpus& corpus, std::string action)
    : action_(std::move(action)),
      bytes_per_token_(static_cast<double>(size_of(corpus.type()))),
      total_bytes_(bytes_per_token_ *
                   static_cast<double>(corpus.num_tokens() + corpus.num_uncounted_tokens())) {}

ScanProgress PassReport::progress() {
  return [this](std::int64_t tokens) { add(tokens); };
}

void PassReport::add(std::int64_t tokens) {
  constexpr std::chrono::seconds kInterval(5);
  const double bytes = static_cast<double>(done_ += tokens) * bytes_per_token_;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  const Clock::time_point now = Clock::now();
  if (!lock || now - last_ < kInterval) {
    return;
  }
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::ostringstream line;
  line << std::fixed << std::setprecision(1) << action_ << ": " << bytes * 1e-9 << " of "
       << total_bytes_ * 1e-9 << " GB, " << bytes * 1e-9 / seconds << " GB/s, "
       << std::setprecision(0) << (total_bytes_ - bytes) * seconds / bytes << " s left";
  log_.info(line.str());
}

}  // namespace bloomery
