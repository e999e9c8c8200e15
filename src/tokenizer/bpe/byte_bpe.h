// Byte-level BPE: pieces of text, as bytes, to ids. Works on raw bytes; the printable alphabet in
// which vocabulary files spell them (bpe/byte_alphabet.h) matters only when a file is read.
#pragma once

#include <array>
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
  // `merges` name tokens of the vocabulary by id; their ranks must differ from one another.
  ByteBpe(std::vector<ByteToken> vocabulary, std::span<const Merge> merges,
          const ByteBpeOptions& options);

  const ByteVocabulary& vocabulary() const { return vocabulary_; }

 private:
  friend class ByteBpeEncoder;
  struct Derivation;

  void derive(std::span<const Merge> merges);
  void number_parts(std::vector<Derivation>& derivations);
  void note_neighbours();

  ByteVocabulary vocabulary_;
  ByteBpeOptions options_;
  // While merging, a part is a number: below 256 a byte, above that the merges in their order, so
  // that the number of a merged part is also its rank.
  PairTable pairs_;
  std::vector<TokenId> id_of_part_;          // kDropped: a byte that is left out
  std::vector<bool> merged_is_whole_;        // by index of the vocabulary: merging gives the token
  std::bitset<256 * 256> may_join_;          // bytes that are neighbours inside some merged token
  bool drops_bytes_ = false;
};

// One thread's way to encode: the model with a cache of words and scratch memory.
class ByteBpeEncoder {
 public:
  // The model must outlive the encoder.
  ByteBpeEncoder(const ByteBpe& model, SplitPattern pattern);

  // Splits the text, which must be valid UTF-8, by the pattern and appends the ids of its pieces.
  void encode(std::string_view text, std::vector<TokenId>& ids);
  // Appends the ids of one piece, any bytes; the pattern does not matter.
  void encode_piece(std::string_view piece, std::vector<TokenId>& ids);

 private:
  template <class Scanner>
  void encode_pieces(std::string_view text, std::vector<TokenId>& ids);
  void add_short(const WordKey& key, std::string_view piece, bool whole, std::vector<TokenId>& ids);
  void add_long(std::string_view piece, std::vector<TokenId>& ids);
  void merge(std::string_view bytes, std::vector<TokenId>& ids);

  const ByteBpe& model_;
  SplitPattern pattern_;
  WordCache cache_;
  std::vector<std::uint32_t> parts_;
  MergeScratch scratch_;
};

}  // namespace bloomery
