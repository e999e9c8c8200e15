#include "tokenizer/hf/bpe_encoder.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/hf/word_mark.h"
#include "tokenizer/utf8.h"

namespace bloomery::hf {

BpeModelEncoder::BpeModelEncoder(const BpeModel& model) : model_(model) {
  if (model_.bytes() != nullptr) bytes_.emplace(*model_.bytes(), SplitPattern::none);
}

void BpeModelEncoder::encode_bytes(std::string_view piece, std::vector<TokenId>& ids) {
  if (bytes_) {
    bytes_->encode_piece(piece, ids);
  } else {
    ModelEncoder::encode_bytes(piece, ids);
  }
}

void BpeModelEncoder::encode(std::string_view piece, std::vector<TokenId>& ids) {
  if (model_.whole_piece_first_) {
    if (const std::optional<TokenId> whole = model_.vocabulary().find(piece)) {
      ids.push_back(*whole);
      return;
    }
  }
  if (!model_.words_apart_) {
    encode_word(piece, piece.size(), ids);
    return;
  }
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t end = marked_word_end(piece, at);
    encode_word(piece.substr(at, end - at), piece.size() - at, ids);
    at = end;
  }
}

void BpeModelEncoder::encode_word(std::string_view word, std::size_t readable,
                                  std::vector<TokenId>& ids) {
  if (word.size() > WordKey::kMaxLength) {
    split_word(word);
    model_.merges_->apply(parts_, scratch_);
    ids.insert(ids.end(), parts_.begin(), parts_.end());
    return;
  }
  const WordKey key = WordKey::of(word.data(), word.size(), readable, false);
  const std::size_t size = ids.size();
  ids.resize(size + WordCache::kMaxIds);
  const std::size_t count = cache_.find(key, ids.data() + size);
  ids.resize(size + count);
  if (count > 0) return;
  split_word(word);
  model_.merges_->apply(parts_, scratch_);
  cache_.insert(key, parts_);
  ids.insert(ids.end(), parts_.begin(), parts_.end());
}

// The token of the character at `at`, or -1. Where the model marks places in words, spelling_
// holds the character with its marks.
TokenId BpeModelEncoder::find_character(std::string_view word, std::size_t at, Utf8Char next) {
  const bool continues = at > 0 && !model_.continuation_.empty();
  const auto length = static_cast<std::size_t>(next.length);
  const bool ends = at + length == word.size() && !model_.ending_.empty();
  if (continues || ends) {
    spelling_ = continues ? model_.continuation_ : std::string();
    spelling_ += word.substr(at, length);
    if (ends) spelling_ += model_.ending_;
    return model_.vocabulary().find(spelling_).value_or(-1);
  }
  spelling_ = word.substr(at, length);
  if (next.code < model_.low_characters_.size()) return model_.low_characters_[next.code];
  const auto found = model_.characters_.find(next.code);
  return found == model_.characters_.end() ? -1 : found->second;
}

bool BpeModelEncoder::fall_back_to_bytes(std::string_view spelling) {
  const auto token = [&](char byte) {
    return model_.byte_tokens_[static_cast<unsigned char>(byte)];
  };
  if (!std::all_of(spelling.begin(), spelling.end(), [&](char b) { return token(b) >= 0; })) {
    return false;
  }
  for (const char byte : spelling) parts_.push_back(token(byte));
  return true;
}

void BpeModelEncoder::split_word(std::string_view word) {
  parts_.clear();
  bool pending = false;  // an unknown character that following ones may join
  for (std::size_t at = 0; at < word.size();) {
    const Utf8Char next = utf8_at(word, at);
    const TokenId token = find_character(word, at, next);
    at += static_cast<std::size_t>(next.length);
    if (token >= 0) {
      if (pending) parts_.push_back(*model_.unknown_);
      pending = false;
      parts_.push_back(token);
    } else if (model_.byte_fallback_ && fall_back_to_bytes(spelling_)) {
      continue;
    } else if (!model_.unknown_name_.empty()) {
      check(model_.unknown_.has_value(), "model.unk_token '", model_.unknown_name_,
            "' is needed for an unknown character, but model.vocab does not have it");
      if (pending && !model_.fuse_unknown_) parts_.push_back(*model_.unknown_);
      pending = true;
    }
  }
  if (pending) parts_.push_back(*model_.unknown_);
}

}  // namespace bloomery::hf
