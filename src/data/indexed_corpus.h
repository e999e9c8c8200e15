// A tokenised corpus on disk: PREFIX.bin with the tokens and PREFIX.idx with the lengths of its
// sequences and the documents they make up. docs/formats.md describes the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {

// The codes of the file format.
enum class TokenType : std::uint8_t {
  u8 = 1,
  i8 = 2,
  i16 = 3,
  i32 = 4,
  i64 = 5,
  f64 = 6,
  f32 = 7,
  u16 = 8
};

std::size_t size_of(TokenType type);
const char* name(TokenType type);
// Megatron's rule: 16 bits below 65,500 tokens, else 32.
TokenType token_type_for(std::int64_t vocab_size);

enum class CorpusFormat { mmap, cached, lazy };

// Read-only, shared by threads. Opening checks every field against the sizes of the two files.
class IndexedCorpus {
 public:
  // `prefix` is the path without .bin or .idx.
  explicit IndexedCorpus(const std::filesystem::path& prefix);
  ~IndexedCorpus();
  IndexedCorpus(IndexedCorpus&&) noexcept;
  IndexedCorpus& operator=(IndexedCorpus&&) noexcept;

  const std::filesystem::path& prefix() const;
  CorpusFormat format() const;
  TokenType type() const;
  std::int64_t num_sequences() const;  // documents, or sentences of a split corpus
  std::int64_t num_documents() const;
  std::int64_t num_tokens() const;  // the sum of the lengths
  // Tokens of the .bin that no sequence counts: the end-of-document tokens of a corpus written by
  // Megatron-DeepSpeed's own tool, which is read as there, shifted.
  std::int64_t num_uncounted_tokens() const;

  std::int32_t length(std::int64_t sequence) const;
  // First sequence of a document; document == num_documents() gives num_sequences().
  std::int64_t first_sequence(std::int64_t document) const;
  // Copies tokens [offset, offset + out.size()) of a sequence.
  void read(std::int64_t sequence, std::int64_t offset, std::span<TokenId> out) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Sequences encoded by one worker, in the type of the file.
struct EncodedBatch {
  std::vector<std::byte> tokens;
  std::vector<std::int32_t> lengths;             // of each sequence
  std::vector<std::int32_t> document_sequences;  // number of sequences of each document
};

// Writes a corpus under temporary names; commit() gives it the final ones (remove an old .idx,
// rename .bin, rename .idx), so that no reader meets a part. Without commit() nothing remains. Two
// writers of one prefix do not disturb each other: each has temporary names of its own and the last
// commit wins.
class IndexedWriter {
 public:
  IndexedWriter(const std::filesystem::path& prefix, TokenType type);
  ~IndexedWriter();
  IndexedWriter(const IndexedWriter&) = delete;
  IndexedWriter& operator=(const IndexedWriter&) = delete;

  void append(const EncodedBatch& batch);
  void add_sequence(std::span<const TokenId> tokens);  // an id beyond the type is an Error
  void end_document();
  // All documents of another corpus of the same type, copied without decoding.
  void append(const IndexedCorpus& corpus);
  void commit();

  std::int64_t num_tokens() const;
  std::int64_t num_documents() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bloomery
