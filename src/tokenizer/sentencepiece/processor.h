// A SentencePiece model ready for use: text to ids and ids to text, without special tokens.
#pragma once

#include "tokenizer/sentencepiece/normalizer.h"
#include "tokenizer/sentencepiece/segmenter.h"

namespace bloomery {

class SentencePieceProcessor {
 public:
  SentencePieceProcessor(SentencePieceFile file, std::string_view name);
  SentencePieceProcessor(const SentencePieceProcessor&) = delete;
  SentencePieceProcessor& operator=(const SentencePieceProcessor&) = delete;

  // Encodes for one thread; refers to the processor.
  class Session {
   public:
    explicit Session(const SentencePieceProcessor& processor)
        : processor_(processor), segmenter_(processor.segmenter_->make_session()) {}
    // Not `at_start`: without the space that goes before a text.
    void encode(std::string_view text, std::vector<TokenId>& ids, bool at_start = true);

   private:
    const SentencePieceProcessor& processor_;
    std::unique_ptr<SegmenterSession> segmenter_;
    std::string normalized_;
  };

  // The ids must be those of pieces.
  std::string decode(std::span<const TokenId> ids) const;

  const SentencePieceFile& file() const { return file_; }
  const PieceTable& pieces() const { return pieces_; }
  // The control piece of this name, if the model has one.
  std::optional<TokenId> control(std::string_view name) const;

 private:
  SentencePieceFile file_;
  PieceTable pieces_;
  SentencePieceNormalizer normalizer_;
  std::optional<SentencePieceNormalizer> denormalizer_;
  std::unique_ptr<Segmenter> segmenter_;
};

}  // namespace bloomery
