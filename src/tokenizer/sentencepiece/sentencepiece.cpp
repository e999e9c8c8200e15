#include "tokenizer/sentencepiece/sentencepiece.h"

#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "tokenizer/sentencepiece/processor.h"
#include "tokenizer/token_matcher.h"

namespace bloomery {
namespace {

constexpr std::int64_t kMostExtraIds = 1'000'000;

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(SentencePieceFile file, std::string_view name)
      : processor_(std::move(file), name) {
    special_.bos = processor_.control(processor_.file().bos_piece);
    special_.eos = processor_.control(processor_.file().eos_piece);
    special_.pad = processor_.control(processor_.file().pad_piece);
    special_.unk = processor_.pieces().unknown();
    special_.eod = special_.eos;
  }

  // Adds Megatron's tokens, in its order.
  void extend(std::int64_t extra_ids) {
    const SentencePieceFile& file = processor_.file();
    special_.cls = add("<CLS>");
    special_.sep = add("<SEP>");
    special_.eod = add("<EOD>");
    special_.mask = add("<MASK>");
    special_.pad = add(special_.pad ? file.pad_piece : "<PAD>");
    special_.bos = add(special_.bos ? file.bos_piece : "<BOS>");
    special_.eos = add(special_.eos ? file.eos_piece : "<EOS>");
    for (std::int64_t i = 0; i < extra_ids; ++i) add(concat("<extra_id_", i, ">"));
  }

  std::unique_ptr<Encoder> make_encoder(const EncodeOptions& options) const override;
  std::string decode(std::span<const TokenId> ids) const override;
  std::int64_t vocab_size() const override { return num_pieces() + new_; }
  std::string piece(TokenId id) const override {
    if (id >= 0 && id < num_pieces()) return processor_.pieces()[id].text;
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? std::string() : added_[found->second].text;
  }
  std::optional<TokenId> find(std::string_view piece) const override {
    if (const auto id = processor_.pieces().find(piece)) return id;
    const auto found = by_text_.find(std::string(piece));
    return found == by_text_.end() ? std::nullopt : std::optional(found->second);
  }
  const SpecialTokens& special() const override { return special_; }

 private:
  friend class SentencePieceEncoder;
  struct Added {
    std::string text;
    TokenId id;
  };

  TokenId add(const std::string& text) {
    if (const auto found = by_text_.find(text); found != by_text_.end()) return found->second;
    const auto known = processor_.pieces().find(text);
    const auto id = known.value_or(static_cast<TokenId>(vocab_size()));
    if (!known) ++new_;
    by_text_.emplace(text, id);
    by_id_.emplace(id, added_.size());
    matcher_.add(text, added_.size());
    added_.push_back({text, id});
    return id;
  }
  std::int64_t num_pieces() const { return static_cast<std::int64_t>(processor_.pieces().size()); }

  SentencePieceProcessor processor_;
  std::vector<Added> added_;  // Megatron's tokens
  std::int64_t new_ = 0;      // of them, those that the model did not have
  std::unordered_map<TokenId, std::size_t> by_id_;
  std::unordered_map<std::string, TokenId> by_text_;
  TokenMatcher matcher_{TokenMatcher::Choice::first_added};  // as Megatron finds them
  SpecialTokens special_;
};

std::string SentencePieceTokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  std::size_t done = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto token = by_id_.find(ids[i]);
    if (token == by_id_.end()) {
      check(ids[i] >= 0 && ids[i] < vocab_size(), "token id ", ids[i],
            " is outside the vocabulary of ", vocab_size(), " pieces");
      continue;
    }
    text += processor_.decode(ids.subspan(done, i - done));
    text += ' ' + added_[token->second].text + ' ';
    done = i + 1;
  }
  return text + processor_.decode(ids.subspan(done));
}

class SentencePieceEncoder : public Encoder {
 public:
  SentencePieceEncoder(const SentencePieceTokenizer& tokenizer, const EncodeOptions& options)
      : tokenizer_(tokenizer),
        parse_(options.parse_special && !tokenizer.matcher_.empty()),
        session_(tokenizer.processor_) {
    if (!options.add_special_tokens) return;
    first_ = tokenizer.special_.bos;
    const bool is_unigram =
        tokenizer.processor_.file().algorithm == SentencePieceAlgorithm::unigram;
    if (is_unigram || !tokenizer.added_.empty()) last_ = tokenizer.special_.eos;
  }

  void encode(std::string_view text, std::vector<TokenId>& ids) override {
    if (first_) ids.push_back(*first_);
    std::size_t done = 0;
    while (parse_) {
      const TokenMatcher::Found found = tokenizer_.matcher_.find(text, done);
      if (found.begin == text.size()) break;
      session_.encode(text.substr(done, found.begin - done), ids);
      ids.push_back(tokenizer_.added_[found.token].id);
      done = found.end;
    }
    session_.encode(text.substr(done), ids);
    if (last_) ids.push_back(*last_);
  }

 private:
  const SentencePieceTokenizer& tokenizer_;
  bool parse_;
  SentencePieceProcessor::Session session_;
  std::optional<TokenId> first_, last_;
};

std::unique_ptr<Encoder> SentencePieceTokenizer::make_encoder(const EncodeOptions& options) const {
  return std::make_unique<SentencePieceEncoder>(*this, options);
}

}  // namespace

std::shared_ptr<const Tokenizer> parse_sentencepiece_tokenizer(std::string_view bytes,
                                                               std::string_view name,
                                                               SentencePieceKind kind,
                                                               std::int64_t extra_ids) {
  check(extra_ids >= 0 && extra_ids <= kMostExtraIds, "vocab-extra-ids is ", extra_ids,
        "; it must be between 0 and ", kMostExtraIds);
  auto tokenizer = std::make_shared<SentencePieceTokenizer>(parse_sentencepiece(bytes, name), name);
  if (kind == SentencePieceKind::megatron) tokenizer->extend(extra_ids);
  return tokenizer;
}

std::shared_ptr<const Tokenizer> load_sentencepiece(const std::filesystem::path& path,
                                                    SentencePieceKind kind,
                                                    std::int64_t extra_ids) {
  return parse_sentencepiece_tokenizer(read_file(path), path.string(), kind, extra_ids);
}

}  // namespace bloomery
