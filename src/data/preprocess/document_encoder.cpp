#include "data/preprocess/document_encoder.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace bloomery {
namespace {

template <class Token>
void append_as(std::span<const TokenId> ids, std::vector<std::byte>& bytes) {
  const std::size_t before = bytes.size();
  bytes.resize(before + ids.size() * sizeof(Token));
  std::byte* to = bytes.data() + before;
  for (const TokenId id : ids) {
    const auto token = static_cast<Token>(id);
    std::memcpy(to, &token, sizeof token);
    to += sizeof token;
  }
}

}  // namespace

DocumentEncoder::DocumentEncoder(const Tokenizer& tokenizer, const DocumentOptions& options,
                                 TokenType type)
    : options_(options),
      type_(type),
      vocab_size_(tokenizer.vocab_size()),
      encoder_(tokenizer.make_encoder(options.encode)) {
  check(type == TokenType::u16 || type == TokenType::i32, "a corpus of text has u16 or i32 tokens");
  if (options.append_eod) {
    check(tokenizer.special().eod.has_value(),
          "--append-eod: this tokenizer has no end-of-document token; leave the flag out, or use a "
          "tokenizer that has one");
    eod_ = *tokenizer.special().eod;
  }
}

void DocumentEncoder::encode_sentences(std::string_view text) {
  sentences_.clear();
  split_sentences(text, options_.keep_newlines, sentences_);
  for (const std::string_view sentence : sentences_) {
    const std::size_t before = ids_.size();
    encoder_->encode(sentence, ids_);
    if (ids_.size() > before) {
      ends_.push_back(ids_.size());
    }
  }
}

void DocumentEncoder::append_tokens(EncodedBatch& batch) const {
  const auto [least, greatest] = std::ranges::minmax(ids_);
  check(least >= 0 && greatest < vocab_size_, "the tokenizer gave the id ",
        least < 0 ? least : greatest, " where its vocabulary has ", vocab_size_, " tokens");
  if (type_ == TokenType::u16) {
    append_as<std::uint16_t>(ids_, batch.tokens);
  } else {
    append_as<std::int32_t>(ids_, batch.tokens);
  }
}

bool DocumentEncoder::encode(std::string_view text, EncodedBatch& batch) {
  constexpr std::size_t kLargestKept = 1 << 22;  // a long document does not hold memory for ever
  if (ids_.capacity() > kLargestKept) {
    ids_ = {};
  }
  ids_.clear();
  ends_.clear();
  if (options_.split_sentences) {
    encode_sentences(text);
  } else {
    encoder_->encode(text, ids_);
    ends_.push_back(ids_.size());
  }
  if (ids_.empty()) {
    return false;
  }
  if (options_.append_eod) {
    ids_.push_back(eod_);
    ends_.back() = ids_.size();
  }
  append_tokens(batch);
  std::size_t begin = 0;
  for (const std::size_t end : ends_) {
    check(end - begin <= std::numeric_limits<std::int32_t>::max(),
          "a document of more than 2^31 tokens");
    batch.lengths.push_back(static_cast<std::int32_t>(end - begin));
    begin = end;
  }
  batch.document_sequences.push_back(static_cast<std::int32_t>(ends_.size()));
  return true;
}

}  // namespace bloomery
