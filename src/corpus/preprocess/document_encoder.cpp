#include "corpus/preprocess/document_encoder.h"

#include <limits>

#include "base/error.h"

namespace bloomery {
DocumentEncoder::DocumentEncoder(const Tokenizer& tokenizer, const DocumentOptions& options,
                                 TokenType type)
    : options_(options), type_(type), encoder_(tokenizer.make_encoder(options.encode)) {
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
  const std::size_t before = batch.tokens.size();
  batch.tokens.resize(before + ids_.size() * size_of(type_));
  encode_tokens(type_, ids_, std::span(batch.tokens).subspan(before));
}

bool DocumentEncoder::encode(std::string_view text, EncodedBatch& batch) {
  constexpr std::size_t kLargestKept = 1 << 22;  // a long document does not hold memory for ever
  if (ids_.capacity() > kLargestKept) {
    ids_ = std::vector<TokenId>();  // {} would keep the memory
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
  batch.document_sequences.push_back(static_cast<std::int64_t>(ends_.size()));
  return true;
}

}  // namespace bloomery
