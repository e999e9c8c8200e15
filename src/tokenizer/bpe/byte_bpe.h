// Byte-level BPE: pieces of text, as bytes, to ids. Works on raw bytes; the printable alphabet in
// which vocabulary files spell them (bpe/byte_alphabet.h) matters only when a file is read.
#pragma once

#include <bitset>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/id_output.h"
#include "tokenizer/bpe/part_merger.h"
#include "tokenizer/bpe/split_pattern.h"
#include "tokenizer/bpe/text_joins.h"
#include "tokenizer/bpe/word_cache.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace bloomery {

struct ByteBpeOptions {
  // A piece that is a token is that token, even where merging would not arrive at it: tiktoken's
  // rule, and ignore_merges of Hugging Face files.
  bool whole_piece_first = false;
  // The id of a byte that is no token; without it such bytes are left out, as Hugging Face does.
  std::optional<TokenId> unknown;
};

// The model: immutable and shared by threads.
class ByteBpe {
 public:
  // `tokens` have their bytes as spelling.
  ByteBpe(Vocabulary tokens, TextJoins joins, const ByteBpeOptions& options);

  const Vocabulary& tokens() const { return tokens_; }

 private:
  friend class ByteBpeEncoder;
  using BytePairs = std::bitset<256 * 256>;

  static std::size_t pair_of(char a, char b) {
    return static_cast<std::size_t>(static_cast<unsigned char>(a)) << 8 |
           static_cast<unsigned char>(b);
  }
  // Two bytes that are neighbours inside some token: others do not join, nor does anything across
  // them. Found when it is first asked for.
  const BytePairs& neighbours() const;

  Vocabulary tokens_;
  TextJoins joins_;
  ByteBpeOptions options_;
  TokenId id_of_byte_[256];
  bool drops_bytes_ = false;  // some byte is no token and left out
  mutable std::once_flag neighbours_found_;
  mutable BytePairs neighbours_;
};

// One thread's way to encode: the model with a cache of words and scratch memory.
class ByteBpeEncoder {
 public:
  // The model must outlive the encoder.
  ByteBpeEncoder(const ByteBpe& model, SplitPattern pattern)
      : model_(model),
        pattern_(pattern),
        reached_(static_cast<std::size_t>(model.tokens_.end_id())) {}

  // Splits the text, which must be valid UTF-8, by the pattern and appends the ids of its pieces.
  void encode(std::string_view text, std::vector<TokenId>& ids);
  // Appends the ids of one piece, any bytes; the pattern does not matter.
  void encode_piece(std::string_view piece, std::vector<TokenId>& ids);

 private:
  // A segment is a part of a piece, cut where no token can reach across; the rule that a whole
  // piece may be a token is not for it.
  enum class Kind : bool { piece, segment };

  // A piece or segment, with its key if it is short enough for one.
  struct Word {
    std::string_view bytes;
    WordKey key;
  };
  static Word word_at(std::string_view text, std::size_t begin, std::size_t end, Kind kind);

  template <class Scanner>
  void encode_pieces(std::string_view text, IdOutput& output);
  void add(const Word& word, Kind kind, IdOutput& output);
  void add_new(std::string_view bytes, Kind kind, IdOutput& output);
  void add_segments(std::string_view piece, IdOutput& output);
  void add_merged(std::string_view bytes, IdOutput& output);
  bool is_reached(std::string_view bytes, TokenId token);
  std::size_t merge(std::string_view bytes);

  const ByteBpe& model_;
  SplitPattern pattern_;
  WordCache cache_;
  std::vector<std::uint32_t> parts_;  // ids
  std::string kept_;                  // of the bytes, those that are not left out
  PartMerger merger_;
  // Whether merging the bytes of a token gives the token, found out when it is first met.
  enum class Reached : std::uint8_t { unknown, yes, no };
  std::vector<Reached> reached_;  // by id
};

}  // namespace bloomery
