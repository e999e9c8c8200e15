// How normalised text is cut into pieces: one class per algorithm of SentencePiece.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/sentencepiece/piece_table.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {

// Cuts texts for one thread.
class SegmenterSession {
 public:
  virtual ~SegmenterSession() = default;
  // Appends the ids of one normalised text, valid UTF-8. Of unknown text each character gives the
  // unknown id or, with byte fallback, the ids of its bytes.
  virtual void segment(std::string_view text, std::vector<TokenId>& ids) = 0;
};

// Immutable and shared by threads; sessions refer to it and it to the pieces.
class Segmenter {
 public:
  virtual ~Segmenter() = default;
  virtual std::unique_ptr<SegmenterSession> make_session() const = 0;
};

std::unique_ptr<Segmenter> make_segmenter(const SentencePieceFile& file, const PieceTable& pieces);

// Whether the segmenter takes texts in which spaces still stand for marks: it looks words up, and
// spells out only those that are new.
bool takes_spaces(const SentencePieceFile& file, const PieceTable& pieces);

// The makers that make_segmenter chooses from.
std::unique_ptr<Segmenter> make_bpe_segmenter(const SentencePieceFile& file,
                                              const PieceTable& pieces);
std::unique_ptr<Segmenter> make_unused_bpe_segmenter(const SentencePieceFile& file,
                                                     const PieceTable& pieces);
std::unique_ptr<Segmenter> make_unigram_segmenter(const SentencePieceFile& file,
                                                  const PieceTable& pieces);
std::unique_ptr<Segmenter> make_word_segmenter(const SentencePieceFile& file,
                                               const PieceTable& pieces);
std::unique_ptr<Segmenter> make_character_segmenter(const SentencePieceFile& file,
                                                    const PieceTable& pieces);

// Appends what a segment of this text becomes: the piece, or the bytes of what is none.
class SegmentWriter {
 public:
  SegmentWriter(const SentencePieceFile& file, const PieceTable& pieces)
      : pieces_(pieces), byte_fallback_(file.byte_fallback) {}

  void write(std::string_view text, TokenId id, std::vector<TokenId>& ids) const {
    if (id == pieces_.unknown() && byte_fallback_) {
      for (const char byte : text) ids.push_back(pieces_.byte_id(static_cast<unsigned char>(byte)));
    } else {
      ids.push_back(id);
    }
  }

 private:
  const PieceTable& pieces_;
  bool byte_fallback_;
};

}  // namespace bloomery
