#include "tokenizer/sentencepiece/sentencepiece.h"

#include "base/error.h"
#include "base/file.h"
#include "tokenizer/sentencepiece/megatron.h"
#include "tokenizer/sentencepiece/processor.h"

namespace bloomery {
namespace {

class PlainTokenizer : public Tokenizer {
 public:
  explicit PlainTokenizer(std::unique_ptr<const SentencePieceProcessor> processor)
      : processor_(std::move(processor)) {
    const SentencePieceFile& file = processor_->file();
    special_.bos = processor_->control(file.bos_piece);
    special_.eos = processor_->control(file.eos_piece);
    special_.pad = processor_->control(file.pad_piece);
    special_.unk = processor_->pieces().unknown();
    special_.eod = special_.eos;
  }

  std::unique_ptr<Encoder> make_encoder(const EncodeOptions& options) const override;

  std::string decode(std::span<const TokenId> ids) const override {
    for (const TokenId id : ids) check_id(id);
    return processor_->decode(ids);
  }
  std::int64_t vocab_size() const override {
    return static_cast<std::int64_t>(processor_->pieces().size());
  }
  std::string piece(TokenId id) const override {
    return id >= 0 && id < vocab_size() ? processor_->pieces()[id].text : std::string();
  }
  std::optional<TokenId> find(std::string_view piece) const override {
    return processor_->pieces().find(piece);
  }
  const SpecialTokens& special() const override { return special_; }

  const SentencePieceProcessor& processor() const { return *processor_; }

 private:
  void check_id(TokenId id) const {
    check(id >= 0 && id < vocab_size(), "token id ", id, " is outside the vocabulary of ",
          vocab_size(), " pieces");
  }

  std::unique_ptr<const SentencePieceProcessor> processor_;
  SpecialTokens special_;
};

class PlainEncoder : public Encoder {
 public:
  PlainEncoder(const PlainTokenizer& tokenizer, const EncodeOptions& options)
      : session_(tokenizer.processor()) {
    if (!options.add_special_tokens) return;
    first_ = tokenizer.special().bos;
    const auto algorithm = tokenizer.processor().file().algorithm;
    if (algorithm == SentencePieceAlgorithm::unigram) last_ = tokenizer.special().eos;
  }

  void encode(std::string_view text, std::vector<TokenId>& ids) override {
    if (first_) ids.push_back(*first_);
    session_.encode(text, ids);
    if (last_) ids.push_back(*last_);
  }

 private:
  SentencePieceProcessor::Session session_;
  std::optional<TokenId> first_, last_;
};

std::unique_ptr<Encoder> PlainTokenizer::make_encoder(const EncodeOptions& options) const {
  return std::make_unique<PlainEncoder>(*this, options);
}

}  // namespace

std::shared_ptr<const Tokenizer> parse_sentencepiece_tokenizer(std::string_view bytes,
                                                               std::string_view name,
                                                               SentencePieceKind kind,
                                                               std::int64_t extra_ids) {
  auto processor = std::make_unique<SentencePieceProcessor>(parse_sentencepiece(bytes, name), name);
  if (kind == SentencePieceKind::plain) {
    return std::make_shared<PlainTokenizer>(std::move(processor));
  }
  return make_megatron_sentencepiece(std::move(processor), extra_ids);
}

std::shared_ptr<const Tokenizer> load_sentencepiece(const std::filesystem::path& path,
                                                    SentencePieceKind kind,
                                                    std::int64_t extra_ids) {
  return parse_sentencepiece_tokenizer(read_file(path), path.string(), kind, extra_ids);
}

}  // namespace bloomery
