// Megatron's SentencePieceTokenizer: a model with further tokens that are recognised in the text.
#include "tokenizer/sentencepiece/megatron.h"

#include <unordered_map>

#include "base/error.h"

namespace bloomery {
namespace {

constexpr std::int64_t kMostExtraIds = 1'000'000;

class MegatronTokenizer : public Tokenizer {
 public:
  MegatronTokenizer(std::unique_ptr<const SentencePieceProcessor> processor, std::int64_t extra_ids)
      : processor_(std::move(processor)) {
    const SentencePieceFile& file = processor_->file();
    special_.cls = add("<CLS>");
    special_.sep = add("<SEP>");
    special_.eod = add("<EOD>");
    special_.mask = add("<MASK>");
    special_.pad = add(processor_->control(file.pad_piece) ? file.pad_piece : "<PAD>");
    special_.bos = add(processor_->control(file.bos_piece) ? file.bos_piece : "<BOS>");
    special_.eos = add(processor_->control(file.eos_piece) ? file.eos_piece : "<EOS>");
    special_.unk = processor_->pieces().unknown();
    for (std::int64_t i = 0; i < extra_ids; ++i) add(concat("<extra_id_", i, ">"));
    std::vector<ByteTrie::Entry> entries;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      entries.push_back({tokens_[i].text, static_cast<std::int32_t>(i)});
    }
    trie_ = ByteTrie(entries);
  }

  std::unique_ptr<Encoder> make_encoder(const EncodeOptions& options) const override;
  std::string decode(std::span<const TokenId> ids) const override;
  std::int64_t vocab_size() const override { return size_in_pieces() + added_; }
  std::string piece(TokenId id) const override {
    if (id >= 0 && id < size_in_pieces()) return processor_->pieces()[id].text;
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? std::string() : tokens_[found->second].text;
  }
  std::optional<TokenId> find(std::string_view piece) const override {
    if (const auto id = processor_->pieces().find(piece)) return id;
    const auto found = by_text_.find(std::string(piece));
    return found == by_text_.end() ? std::nullopt : std::optional(found->second);
  }
  const SpecialTokens& special() const override { return special_; }

 private:
  friend class MegatronEncoder;
  struct Token {
    std::string text;
    TokenId id;
  };

  TokenId add(const std::string& text) {
    if (const auto found = by_text_.find(text); found != by_text_.end()) return found->second;
    const auto known = processor_->pieces().find(text);
    const auto id = known.value_or(static_cast<TokenId>(size_in_pieces() + added_));
    if (!known) ++added_;
    by_text_.emplace(text, id);
    by_id_.emplace(id, tokens_.size());
    tokens_.push_back({text, id});
    return id;
  }
  std::int64_t size_in_pieces() const {
    return static_cast<std::int64_t>(processor_->pieces().size());
  }

  std::unique_ptr<const SentencePieceProcessor> processor_;
  std::vector<Token> tokens_;  // in the order in which Megatron adds them
  std::int64_t added_ = 0;     // of them, those that the model did not have
  std::unordered_map<TokenId, std::size_t> by_id_;
  std::unordered_map<std::string, TokenId> by_text_;
  ByteTrie trie_;
  SpecialTokens special_;
};

std::string MegatronTokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  std::size_t done = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto token = by_id_.find(ids[i]);
    if (token == by_id_.end()) {
      check(ids[i] >= 0 && ids[i] < vocab_size(), "token id ", ids[i],
            " is outside the vocabulary of ", vocab_size(), " pieces");
      continue;
    }
    text += processor_->decode(ids.subspan(done, i - done));
    text += ' ' + tokens_[token->second].text + ' ';
    done = i + 1;
  }
  return text + processor_->decode(ids.subspan(done));
}

class MegatronEncoder : public Encoder {
 public:
  MegatronEncoder(const MegatronTokenizer& tokenizer, const EncodeOptions& options)
      : tokenizer_(tokenizer),
        parse_(options.parse_special),
        add_(options.add_special_tokens),
        session_(*tokenizer.processor_) {}

  void encode(std::string_view text, std::vector<TokenId>& ids) override {
    if (add_) ids.push_back(*tokenizer_.special().bos);
    std::size_t done = 0;
    for (std::size_t at = 0; parse_ && at < text.size();) {
      const MegatronTokenizer::Token* token = token_at(text, at);
      if (token == nullptr) {
        ++at;
        continue;
      }
      session_.encode(text.substr(done, at - done), ids);
      ids.push_back(token->id);
      done = at += token->text.size();
    }
    session_.encode(text.substr(done), ids);
    if (add_) ids.push_back(*tokenizer_.special().eos);
  }

 private:
  // Of several tokens that begin here Megatron takes the one that was added first.
  const MegatronTokenizer::Token* token_at(std::string_view text, std::size_t at) const {
    const ByteTrie& trie = tokenizer_.trie_;
    std::int32_t first = ByteTrie::kNoValue;
    ByteTrie::State state = ByteTrie::kRoot;
    for (; at < text.size(); ++at) {
      state = trie.next(state, text[at]);
      if (state == ByteTrie::kNowhere) break;
      const std::int32_t index = trie.value(state);
      if (index != ByteTrie::kNoValue && (first == ByteTrie::kNoValue || index < first)) {
        first = index;
      }
    }
    return first == ByteTrie::kNoValue ? nullptr
                                       : &tokenizer_.tokens_[static_cast<std::size_t>(first)];
  }

  const MegatronTokenizer& tokenizer_;
  bool parse_, add_;
  SentencePieceProcessor::Session session_;
};

std::unique_ptr<Encoder> MegatronTokenizer::make_encoder(const EncodeOptions& options) const {
  return std::make_unique<MegatronEncoder>(*this, options);
}

}  // namespace

std::shared_ptr<const Tokenizer> make_megatron_sentencepiece(
    std::unique_ptr<const SentencePieceProcessor> processor, std::int64_t extra_ids) {
  check(extra_ids >= 0 && extra_ids <= kMostExtraIds, "vocab-extra-ids is ", extra_ids,
        "; it must be between 0 and ", kMostExtraIds);
  return std::make_shared<MegatronTokenizer>(std::move(processor), extra_ids);
}

}  // namespace bloomery
