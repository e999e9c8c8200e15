#include "tokenizer/bpe/byte_tokenizer.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/bpe/byte_alphabet.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

class PlainEncoder final : public Encoder {
 public:
  PlainEncoder(const ByteBpe& model, SplitPattern pattern) : words_(model, pattern) {}
  void encode(std::string_view text, std::vector<TokenId>& ids) override {
    words_.encode(text, ids);
  }

 private:
  ByteBpeEncoder words_;
};

// Cuts the text at the special tokens in it, the leftmost first; of two that start together the
// one that was given first.
class SpecialEncoder final : public Encoder {
 public:
  SpecialEncoder(const ByteBpe& model, SplitPattern pattern, const std::vector<ByteToken>& tokens)
      : words_(model, pattern), tokens_(tokens) {}

  void encode(std::string_view text, std::vector<TokenId>& ids) override {
    // Where each token occurs next; each is searched for once over the whole text.
    std::vector<std::size_t> next;
    for (const ByteToken& token : tokens_) {
      next.push_back(text.find(token.bytes));
    }
    std::size_t done = 0;
    while (done < text.size()) {
      for (std::size_t i = 0; i < next.size(); ++i) {
        if (next[i] < done) next[i] = text.find(tokens_[i].bytes, done);
      }
      const auto nearest = std::ranges::min_element(next);
      if (nearest == next.end() || *nearest == std::string_view::npos) break;
      const ByteToken& token = tokens_[static_cast<std::size_t>(nearest - next.begin())];
      words_.encode(text.substr(done, *nearest - done), ids);
      ids.push_back(token.id);
      done = *nearest + token.bytes.size();
    }
    words_.encode(text.substr(done), ids);
  }

 private:
  ByteBpeEncoder words_;
  const std::vector<ByteToken>& tokens_;
};

}  // namespace

ByteTokenizer::ByteTokenizer(ByteTokenizerParts parts) : parts_(std::move(parts)) {
  vocab_size_ = parts_.model.vocabulary().id_limit();
  for (const ByteToken& token : parts_.extra) {
    check(parts_.model.vocabulary().bytes(token.id).empty() &&
              extra_by_id_.emplace(token.id, &token).second,
          "the token '", token.bytes, "' has the id ", token.id, " of another token");
    check(extra_by_text_.emplace(token.bytes, token.id).second, "the token '", token.bytes,
          "' is there twice");
    vocab_size_ = std::max<std::int64_t>(vocab_size_, token.id + 1);
  }
}

std::unique_ptr<Encoder> ByteTokenizer::make_encoder(const EncodeOptions& options) const {
  if (options.parse_special && !parts_.in_text.empty()) {
    return std::make_unique<SpecialEncoder>(parts_.model, parts_.pattern, parts_.in_text);
  }
  return std::make_unique<PlainEncoder>(parts_.model, parts_.pattern);
}

const ByteToken* ByteTokenizer::find_extra(TokenId id) const {
  const auto found = extra_by_id_.find(id);
  return found == extra_by_id_.end() ? nullptr : found->second;
}

std::string ByteTokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  for (const TokenId id : ids) {
    std::string_view bytes = parts_.model.vocabulary().bytes(id);
    if (bytes.empty()) {
      const ByteToken* extra = find_extra(id);
      check(extra != nullptr, "token id ", id, " is not in the vocabulary, whose ids are below ",
            vocab_size_);
      bytes = extra->bytes;
    }
    text.append(bytes);
  }
  return repair_utf8(text);
}

std::string ByteTokenizer::piece(TokenId id) const {
  const std::string_view bytes = parts_.model.vocabulary().bytes(id);
  if (!bytes.empty()) return parts_.spelled ? spell_bytes(bytes) : std::string(bytes);
  const ByteToken* extra = find_extra(id);
  return extra == nullptr ? std::string() : extra->bytes;
}

std::optional<TokenId> ByteTokenizer::find(std::string_view piece) const {
  const auto extra = extra_by_text_.find(piece);
  if (extra != extra_by_text_.end()) return extra->second;
  if (!parts_.spelled) return parts_.model.vocabulary().find(piece);
  if (!is_utf8(piece)) return std::nullopt;
  const std::optional<std::string> bytes = unspell_bytes(piece);
  return bytes ? parts_.model.vocabulary().find(*bytes) : std::nullopt;
}

}  // namespace bloomery
