// Byte-level BPE: pieces of text, as bytes, to ids. Works on raw bytes; the printable alphabet in
// which vocabulary files spell them (bpe/byte_alphabet.h) matters only when a file is read.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/merge_rules.h"
#include "tokenizer/bpe/part_merger.h"
#include "tokenizer/bpe/split_pattern.h"
#include "tokenizer/bpe/word_cache.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace bloomery {

// Two tokens that join.
struct TokenMerge {
  TokenId left, right, result;
};

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
  // `tokens` have their bytes as spelling. `merges` name them by id, the first joins first; the
  // result of each is its two parts joined.
  ByteBpe(Vocabulary tokens, const std::vector<TokenMerge>& merges, const ByteBpeOptions& options);

  const Vocabulary& tokens() const { return tokens_; }

 private:
  friend class ByteBpeEncoder;

  // While merging, a part is a byte or, from kFirstToken on, a token.
  static constexpr std::uint32_t kFirstToken = 256;
  TokenId id_of_part(std::uint32_t part) const {
    return part < kFirstToken ? id_of_byte_[part] : static_cast<TokenId>(part - kFirstToken);
  }

  Vocabulary tokens_;
  ByteBpeOptions options_;
  MergeRules rules_;
  TokenId id_of_byte_[kFirstToken];
  std::bitset<256 * 256> may_join_;  // two bytes that are neighbours inside some merged token
  bool drops_bytes_ = false;         // some byte is no token and left out
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
  class Output;
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
  void encode_pieces(std::string_view text, Output& output);
  void add(const Word& word, Kind kind, Output& output);
  void add_new(std::string_view bytes, Kind kind, Output& output);
  void add_segments(std::string_view piece, Output& output);
  void add_merged(std::string_view bytes, Output& output);
  bool is_reached(std::string_view bytes, TokenId token);
  std::size_t merge(std::string_view bytes);

  const ByteBpe& model_;
  SplitPattern pattern_;
  WordCache cache_;
  std::vector<std::uint32_t> parts_;
  PartMerger merger_;
  // Whether merging the bytes of a token gives the token, found out when it is first met.
  enum class Reached : std::uint8_t { unknown, yes, no };
  std::vector<Reached> reached_;  // by id
};

}  // namespace bloomery
