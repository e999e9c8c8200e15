#include "tokenizer/null_tokenizer.h"

#include <charconv>

#include "base/error.h"

namespace bloomery {
namespace {

class NullTokenizer : public Tokenizer {
 public:
  explicit NullTokenizer(std::int64_t vocab_size) : end_(static_cast<TokenId>(vocab_size)) {
    special_.eod = end_;
  }

  std::unique_ptr<Encoder> make_encoder(const EncodeOptions&) const override {
    return std::make_unique<NullEncoder>(*this);
  }

  std::string decode(std::span<const TokenId> ids) const override {
    std::string text;
    for (const TokenId id : ids) {
      check(id >= 0 && id <= end_, "token id ", id, " is not in the vocabulary of ", vocab_size(),
            " tokens");
      if (!text.empty()) text += ' ';
      text += std::to_string(id);
    }
    return text;
  }

  std::int64_t vocab_size() const override { return std::int64_t{end_} + 1; }

  std::string piece(TokenId id) const override {
    return id < 0 || id > end_ ? std::string() : std::to_string(id);
  }

  std::optional<TokenId> find(std::string_view piece) const override {
    TokenId id = 0;
    const char* const end = piece.data() + piece.size();
    const auto [rest, error] = std::from_chars(piece.data(), end, id);
    if (error != std::errc() || rest != end || id < 0 || id > end_) return std::nullopt;
    return id;
  }

  std::string surface(TokenId id) const override { return piece(id); }
  bool is_special(TokenId id) const override { return id == end_; }
  const SpecialTokens& special() const override { return special_; }

 private:
  class NullEncoder : public Encoder {
   public:
    explicit NullEncoder(const NullTokenizer& tokenizer) : tokenizer_(tokenizer) {}

    void encode(std::string_view text, std::vector<TokenId>& ids) override {
      constexpr std::string_view kSpaces = " \t\r\n";
      for (std::size_t at = text.find_first_not_of(kSpaces); at != text.npos;) {
        const std::size_t end = std::min(text.find_first_of(kSpaces, at), text.size());
        const std::string_view word = text.substr(at, end - at);
        const std::optional<TokenId> id = tokenizer_.find(word);
        check(id.has_value(), "'", word, "' is not a number from 0 to ", tokenizer_.end_,
              ", which is all that NullTokenizer takes");
        ids.push_back(*id);
        at = text.find_first_not_of(kSpaces, end);
      }
    }

   private:
    const NullTokenizer& tokenizer_;
  };

  TokenId end_;
  SpecialTokens special_;
};

}  // namespace

std::shared_ptr<const Tokenizer> make_null_tokenizer(std::int64_t vocab_size) {
  check(vocab_size > 0 && vocab_size < INT32_MAX, "NullTokenizer needs --vocab-size, from 1 to ",
        INT32_MAX - 1, "; it is ", vocab_size);
  return std::make_shared<NullTokenizer>(vocab_size);
}

}  // namespace bloomery
