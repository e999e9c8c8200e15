#include "text/words/cut_source.h"

#include <algorithm>

namespace bloomery {

bool CutSource::next(LineChunk& chunk) {
  if (ended_ || allowance_ == 0) return false;
  if (!from_.next(chunk)) {
    ended_ = true;
    return false;
  }
  if (limits_.bytes > 0 || limits_.documents > 0) cut(chunk);
  allowance_ -= std::min<std::uint64_t>(allowance_, chunk.used);
  return !ended_ || chunk.used > 0;
}

// Ends the input after the last line that is within the limits. A line that is too long counts in
// bytes, and is no document.
void CutSource::cut(LineChunk& chunk) {
  if (chunk.overlong_bytes > 0) {
    bytes_ += chunk.overlong_bytes;
    ended_ = limits_.bytes > 0 && bytes_ > limits_.bytes;
    return;
  }
  const std::string_view text = chunk.bytes();
  std::size_t kept = 0;
  for (std::size_t at = 0; at < text.size() && !ended_; kept = ended_ ? kept : at) {
    const bool is_document = !is_blank(next_line(text, at));
    ended_ = (limits_.bytes > 0 && bytes_ + at > limits_.bytes) ||
             (limits_.documents > 0 && is_document && documents_ == limits_.documents);
    if (!ended_ && is_document) ++documents_;
  }
  chunk.used = kept;
  bytes_ += kept;
}

}  // namespace bloomery
