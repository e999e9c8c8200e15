#include "tokenizer/sentencepiece/sentencepiece.h"

#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/file.h"
#include "tokenizer/byte_piece.h"
#include "tokenizer/sentencepiece/processor.h"
#include "tokenizer/token_matcher.h"

namespace bloomery {
namespace {

constexpr std::int64_t kMostExtraIds = 1'000'000;

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(SentencePieceFile file, std::string_view name)
      : processor_(std::move(file), name) {
    const SentencePieceFile& model = processor_.file();
    special_.bos = processor_.control(model.bos_piece);
    special_.eos = processor_.control(model.eos_piece);
    special_.pad = processor_.control(model.pad_piece);
    special_.unk = processor_.pieces().unknown();
    special_.eod = special_.eos;
    add_eos_ = model.algorithm == SentencePieceAlgorithm::unigram ? Ends::documents : Ends::none;
    for (TokenId id = 0; id < num_pieces(); ++id) {
      const SentencePieceEntry& piece = processor_.pieces()[id];
      if (piece.type == PieceType::control || piece.type == PieceType::unknown) {
        with_control_.add(piece.text, marks_.size());
        marks_.push_back({piece.text, id});
      }
    }
  }

  // Adds Megatron's tokens, in its order.
  void extend(std::int64_t extra_ids) {
    const SentencePieceFile& file = processor_.file();
    is_megatron_ = true;
    add_eos_ = Ends::all;
    special_.cls = add("<CLS>");
    special_.sep = add("<SEP>");
    special_.eod = add("<EOD>");
    special_.mask = add("<MASK>");
    special_.pad = add(special_.pad ? file.pad_piece : "<PAD>");
    special_.bos = add(special_.bos ? file.bos_piece : "<BOS>");
    special_.eos = add(special_.eos ? file.eos_piece : "<EOS>");
    for (std::int64_t i = 0; i < extra_ids; ++i) add(concat("<extra_id_", i, ">"));
  }

  void take(const SentencePieceNotes& notes) {
    for (const SentencePieceNotes::Added& token : notes.added) {
      const TokenId id = add(token.text);
      if (token.is_special) {
        ordinary_.erase(id);
      } else {
        ordinary_.insert(id);
      }
    }
    // By the name given, or by the model's own.
    const auto name = [&](const std::string& given, std::optional<TokenId>& token) {
      if (!given.empty()) {
        token = add(given);
        ordinary_.erase(*token);
      } else if (token) {
        add(piece(*token));
      }
    };
    name(notes.names.bos, special_.bos);
    name(notes.names.eos, special_.eos);
    name(notes.names.unk, special_.unk);
    name(notes.names.pad, special_.pad);
    name(notes.names.cls, special_.cls);
    name(notes.names.sep, special_.sep);
    name(notes.names.mask, special_.mask);
    special_.eod = special_.eos;
    add_bos_ = notes.add_bos.value_or(add_bos_);
    if (notes.add_eos) add_eos_ = *notes.add_eos ? Ends::all : Ends::none;
    spaces_every_part_ =
        notes.legacy || processor_.file().algorithm == SentencePieceAlgorithm::unigram;
  }

  std::unique_ptr<Encoder> make_encoder(const EncodeOptions& options) const override;
  std::string decode(std::span<const TokenId> ids) const override;
  std::int64_t vocab_size() const override { return num_pieces() + new_; }
  std::string piece(TokenId id) const override {
    if (id >= 0 && id < num_pieces()) return processor_.pieces()[id].text;
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? std::string() : marks_[found->second].text;
  }
  std::optional<TokenId> find(std::string_view piece) const override {
    if (const auto id = processor_.pieces().find(piece)) return id;
    const auto found = by_text_.find(std::string(piece));
    return found == by_text_.end() ? std::nullopt : std::optional(found->second);
  }
  std::string surface(TokenId id) const override {
    return id == special_.unk ? std::string() : surface_of_piece(piece(id));
  }
  bool is_special(TokenId id) const override {
    if (by_id_.contains(id)) return !ordinary_.contains(id);
    if (id < 0 || id >= num_pieces()) return false;
    const PieceType type = processor_.pieces()[id].type;
    return type == PieceType::control || type == PieceType::unknown;
  }
  const SpecialTokens& special() const override { return special_; }

 private:
  friend class SentencePieceEncoder;
  struct Mark {
    std::string text;
    TokenId id;
  };
  enum class Ends { none, documents, all };  // which texts get an eos

  TokenId add(const std::string& text) {
    if (const auto found = by_text_.find(text); found != by_text_.end()) return found->second;
    const auto known = processor_.pieces().find(text);
    const auto id = known.value_or(static_cast<TokenId>(vocab_size()));
    if (!known) ++new_;
    by_text_.emplace(text, id);
    if (!known || is_megatron_) by_id_.emplace(id, marks_.size());
    matcher_.add(text, marks_.size());
    with_control_.add(text, marks_.size());
    marks_.push_back({text, id});
    return id;
  }
  std::int64_t num_pieces() const { return static_cast<std::int64_t>(processor_.pieces().size()); }

  SentencePieceProcessor processor_;
  std::vector<Mark> marks_;                         // what may be looked for in a text
  std::int64_t new_ = 0;                            // tokens that the model did not have
  std::unordered_map<TokenId, std::size_t> by_id_;  // that are no pieces; of Megatron's, all
  std::unordered_set<TokenId> ordinary_;            // of them, those that are text
  std::unordered_map<std::string, TokenId> by_text_;
  bool is_megatron_ = false, add_bos_ = true, spaces_every_part_ = true;
  Ends add_eos_ = Ends::none;
  // In order, as Megatron finds them: what is special in a text, and also the control pieces.
  TokenMatcher matcher_{TokenMatcher::Choice::first_added};
  TokenMatcher with_control_{TokenMatcher::Choice::first_added};
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
    const std::string& own = marks_[token->second].text;
    text += processor_.decode(ids.subspan(done, i - done));
    text += is_megatron_ ? ' ' + own + ' ' : own;
    done = i + 1;
  }
  return text + processor_.decode(ids.subspan(done));
}

class SentencePieceEncoder : public Encoder {
 public:
  SentencePieceEncoder(const SentencePieceTokenizer& tokenizer, const EncodeOptions& options)
      : tokenizer_(tokenizer),
        matcher_(options.parse_control   ? &tokenizer.with_control_
                 : options.parse_special ? &tokenizer.matcher_
                                         : nullptr),
        session_(tokenizer.processor_) {
    using Ends = SentencePieceTokenizer::Ends;
    if (!options.add_special_tokens) return;
    if (tokenizer.add_bos_) first_ = tokenizer.special_.bos;
    const bool ends = tokenizer.add_eos_ == Ends::all ||
                      (tokenizer.add_eos_ == Ends::documents && !options.is_prompt);
    if (ends) last_ = tokenizer.special_.eos;
  }

  void encode(std::string_view text, std::vector<TokenId>& ids) override {
    if (first_) ids.push_back(*first_);
    std::size_t done = 0;
    const auto encode_until = [&](std::size_t end) {
      session_.encode(text.substr(done, end - done), ids,
                      done == 0 || tokenizer_.spaces_every_part_);
    };
    while (matcher_ != nullptr && !matcher_->empty()) {
      const TokenMatcher::Found found = matcher_->find(text, done);
      if (found.begin == text.size()) break;
      encode_until(found.begin);
      ids.push_back(tokenizer_.marks_[found.token].id);
      done = found.end;
    }
    encode_until(text.size());
    if (last_) ids.push_back(*last_);
  }

 private:
  const SentencePieceTokenizer& tokenizer_;
  const TokenMatcher* matcher_;  // null: nothing is looked for
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

std::shared_ptr<const Tokenizer> load_sentencepiece(const std::filesystem::path& path,
                                                    const SentencePieceNotes& notes) {
  const std::string name = path.string();
  auto tokenizer =
      std::make_shared<SentencePieceTokenizer>(parse_sentencepiece(read_file(path), name), name);
  tokenizer->take(notes);
  return tokenizer;
}

}  // namespace bloomery
