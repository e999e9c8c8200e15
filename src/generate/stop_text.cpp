#include "generate/stop_text.h"

#include <algorithm>

namespace bloomery {

namespace {

bool has_text(const Tokenizer& tokenizer, bool skip_special, TokenId token) {
  return token < tokenizer.vocab_size() && !(skip_special && tokenizer.is_special(token));
}

std::vector<TokenId> with_text(const Tokenizer& tokenizer, bool skip_special,
                               std::span<const TokenId> tokens) {
  std::vector<TokenId> kept(tokens.begin(), tokens.end());
  std::erase_if(kept, [&](TokenId token) { return !has_text(tokenizer, skip_special, token); });
  return kept;
}

}  // namespace

StopText::StopText(const Tokenizer& tokenizer, std::span<const std::string> stops,
                   std::span<const TokenId> prompt, bool skip_special)
    : tokenizer_(tokenizer),
      skip_special_(skip_special),
      decoder_(tokenizer, with_text(tokenizer, skip_special, prompt)),
      stops_(stops) {}

std::string StopText::push(TokenId token) {
  if (!has_text(tokenizer_, skip_special_, token)) {
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
