#include "generate/stop_text.h"

#include <algorithm>

namespace bloomery {

StopText::StopText(const Tokenizer& tokenizer, std::span<const std::string> stops,
                   std::span<const TokenId> prompt)
    : tokenizer_(tokenizer), decoder_(tokenizer), stops_(stops) {
  for (const TokenId token : prompt) {
    if (token < tokenizer.vocab_size()) {
      decoder_.push(token);
    }
  }
}

std::string StopText::push(TokenId token) {
  if (token >= tokenizer_.vocab_size()) {
    return {};
  }
  held_ += decoder_.push(token);
  return release(false);
}

std::string StopText::finish() {
  held_ += decoder_.finish();
  return release(true);
}

// What is held is either free of stop strings or ends with the beginning of one, so that a stop
// string is found as soon as its last byte is there.
std::string StopText::release(bool all) {
  if (stopped_) {
    return {};
  }
  std::size_t certain = held_.size();
  for (const std::string& stop : stops_) {
    if (const std::size_t at = held_.find(stop); at != std::string::npos) {
      stopped_ = true;
      certain = std::min(certain, at);
    }
  }
  for (std::size_t i = 0; !stopped_ && !all && i < stops_.size(); ++i) {
    const std::string_view stop = stops_[i];
    const std::size_t longest = std::min(stop.size() - 1, held_.size());
    for (std::size_t length = longest; length > 0; --length) {
      if (held_.ends_with(stop.substr(0, length))) {
        certain = std::min(certain, held_.size() - length);
        break;
      }
    }
  }
  std::string released = held_.substr(0, certain);
  held_.erase(0, certain);
  text_ += released;
  return released;
}

}  // namespace bloomery
