// Byte-level BPE: pieces of text, as bytes, to ids. Works on raw bytes; the printable alphabet in
// which vocabulary files spell them (bpe/byte_alphabet.h) matters only when a file is read.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/byte_vocabulary.h"
#include "tokenizer/bpe/merge.h"
#include "tokenizer/bpe/pair_table.h"
#include "tokenizer/bpe/part_merger.h"
#include "tokenizer/bpe/split_pattern.h"
#include "tokenizer/bpe/word_cache.h"
#include "tokenizer/tokenizer.h"

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
  // `merges` name tokens of the vocabulary by id; no two pairs have the same rank.
  ByteBpe(std::vector<ByteToken> vocabulary, std::span<const Merge> merges,
          const ByteBpeOptions& options);

  const ByteVocabulary& vocabulary() const { return vocabulary_; }
  // The bytes of the ids one after another. An id outside the vocabulary is an Error.
  std::string decode(std::span<const TokenId> ids) const;

 private:
  friend class ByteBpeEncoder;

  void number_parts(std::span<const Merge> merges);
  void note_neighbours();

  ByteVocabulary vocabulary_;
  ByteBpeOptions options_;
  // While merging, a part is a number: below 256 a byte, above that the merges in their order, so
  // that the number of a merged part is also its rank.
  PairTable pairs_;
  std::vector<TokenId> id_of_part_;
  std::vector<bool> merges_to_itself_;  // by index in the vocabulary: merging its bytes gives it
  std::bitset<256 * 256> may_join_;     // two bytes that are neighbours inside some merged token
  bool drops_bytes_ = false;            // some byte is no token and left out
};

// One thread's way to encode: the model with a cache of words and scratch memory.
class ByteBpeEncoder {
 public:
  // The model must outlive the encoder.
  ByteBpeEncoder(const ByteBpe& model, SplitPattern pattern) : model_(model), pattern_(pattern) {}

  // Splits the text, which must be valid UTF-8, by the pattern and appends the ids of its pieces.
  void encode(std::string_view text, std::vector<TokenId>& ids);
  // Appends the ids of one piece, any bytes; the pattern does not matter.
  void encode_piece(std::string_view piece, std::vector<TokenId>& ids);

 private:
  class Output;
  // A segment is a part of a piece, cut where no token can reach across; the rule that a whole
  // piece may be a token is not for it.
  enum class Kind : bool { piece, segment };

  template <class Scanner>
  void encode_pieces(std::string_view text, Output& output);
  void add(std::string_view bytes, std::size_t readable, Kind kind, Output& output);
  void add_new(std::string_view bytes, Kind kind, Output& output);
  void add_segments(std::string_view piece, Output& output);
  void add_merged(std::string_view bytes, Output& output);

  const ByteBpe& model_;
  SplitPattern pattern_;
  WordCache cache_;
  std::vector<std::uint32_t> parts_;
  PartMerger merger_;
};

}  // namespace bloomery
