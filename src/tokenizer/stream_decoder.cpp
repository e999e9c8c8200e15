#include "tokenizer/stream_decoder.h"

#include <algorithm>
#include <cassert>
#include <span>

#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";
constexpr std::size_t kPatience = 16;  // ids held back before decoding is tried less often

// <0x41>: a byte of a character, or of a run that is text only as a whole.
bool is_byte_piece(std::string_view piece) {
  return piece.size() == 6 && piece.starts_with("<0x") && piece.ends_with('>');
}

}  // namespace

// Whether more ids may change the end of this text: it ends in part of a character, or in bytes.
bool StreamDecoder::may_change(std::string_view text) const {
  return text.ends_with(kReplacement) || is_byte_piece(tokenizer_.piece(ids_.back()));
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, std::span<const TokenId> prompt)
    : tokenizer_(tokenizer),
      ids_(prompt.begin(), prompt.end()),
      has_prompt_(!prompt.empty()),
      settled_(prompt.size()),
      settled_text_(tokenizer.decode(prompt)) {
  while (settled_text_.ends_with(kReplacement)) {
    settled_text_.resize(settled_text_.size() - kReplacement.size());
  }
}

std::string StreamDecoder::push(TokenId id) {
  ids_.push_back(id);
  if (ids_.size() < retry_) return {};
  const std::span<const TokenId> all = ids_;
  std::string text = tokenizer_.decode(all.subspan(window_));
  if (has_prompt_ && returned_ == 0 && !may_change(text) && !text.starts_with(settled_text_)) {
    // Bytes that are no text have changed what the prompt says: what follows is decoded by itself.
    window_ = settled_;
    settled_text_.clear();
    text = tokenizer_.decode(all.subspan(window_));
  }
  if (may_change(text) || !text.starts_with(settled_text_)) {
    // Held back for long: what waits is decoded again only when it has doubled.
    const std::size_t waiting = ids_.size() - settled_;
    if (waiting > kPatience) retry_ = ids_.size() + waiting;
    return {};
  }
  std::string added = text.substr(settled_text_.size());
  // The next window starts with ids that have text, so that what decoders do to the start of a
  // text happens to them.
  const std::size_t before = settled_;
  settled_ = ids_.size();
  settled_text_ = tokenizer_.decode(all.subspan(before));
  if (settled_text_.empty()) {
    settled_text_ = text;
  } else {
    window_ = before;
  }
  returned_ += added.size();
  return added;
}

std::string StreamDecoder::finish() {
  std::string rest;
  if (settled_ < ids_.size()) {
    if (has_prompt_) {
      const std::span<const TokenId> all = ids_;
      rest = tokenizer_.decode(all.subspan(window_));
      rest = rest.starts_with(settled_text_) ? rest.substr(settled_text_.size())
                                             : tokenizer_.decode(all.subspan(settled_));
    } else {
      rest = tokenizer_.decode(ids_).substr(returned_);
    }
  }
  has_prompt_ = false;
  ids_.clear();
  settled_text_.clear();
  window_ = settled_ = returned_ = retry_ = 0;
  return rest;
}

}  // namespace bloomery
