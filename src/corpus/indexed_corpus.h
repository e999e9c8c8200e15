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

#include "corpus/corpus_tokenizer.h"
#include "corpus/token_type.h"

namespace bloomery {

// How the .idx is written. `cached` and `lazy` are two ways of reading the same older bytes; a file
// of that kind is said to be `cached`.
enum class CorpusFormat { mmap, cached, lazy };

const char* name(CorpusFormat format);
std::filesystem::path bin_path(const std::filesystem::path& prefix);
std::filesystem::path idx_path(const std::filesystem::path& prefix);

// Where a sequence lies in the .bin, in tokens.
struct SequencePlace {
  std::int64_t first_token = 0, length = 0;
};

// Read-only, shared by threads. Opening checks every field against the sizes of the two files.
// Index and tokens are read from the files when they are wanted, so that they cost no memory of
// this process, and a file that someone cuts short is an Error.
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
  std::int64_t num_empty_documents() const;  // those without sequences
  std::int64_t num_tokens() const;           // the sum of the lengths
  // Tokens of the .bin that no sequence counts: the end-of-document tokens of a corpus written by
  // Megatron-DeepSpeed's own tool, which is read as there, shifted.
  std::int64_t num_uncounted_tokens() const;

  SequencePlace place(std::int64_t sequence) const;
  std::int32_t length(std::int64_t sequence) const;
  // The token of the .bin at which a sequence starts: the sum of the lengths before it.
  std::int64_t first_token(std::int64_t sequence) const;
  // First sequence of a document; document == num_documents() gives num_sequences().
  std::int64_t first_sequence(std::int64_t document) const;
  // The same of many at once. first_tokens() takes last == num_sequences() + 1, first_sequences()
  // num_documents() + 1.
  std::vector<std::int32_t> lengths(std::int64_t first, std::int64_t last) const;
  std::vector<std::int64_t> first_tokens(std::int64_t first, std::int64_t last) const;
  std::vector<std::int64_t> first_sequences(std::int64_t first, std::int64_t last) const;
  // Copies tokens [offset, offset + out.size()) of a sequence.
  void read(std::int64_t sequence, std::int64_t offset, std::span<TokenId> out) const;
  // Copies tokens of the .bin by their place in it, uncounted ones included.
  void read_bin(std::int64_t first, std::span<TokenId> out) const;
  // The same as they are stored; out.size() is a multiple of the size of a token.
  void read_bin_bytes(std::int64_t first, std::span<std::byte> out) const;
  // Tells a corpus from others whose index differs: sizes and a hash of the .idx.
  std::string fingerprint() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Sequences encoded by one worker, in the type of the file.
struct EncodedBatch {
  std::vector<std::byte> tokens;
  std::vector<std::int32_t> lengths;             // of each sequence
  std::vector<std::int64_t> document_sequences;  // number of sequences of each document
};

// Writes a corpus under temporary names; commit() gives it the final ones (remove an old .idx,
// rename .bin, rename .idx), so that no reader meets a part. Without commit() nothing remains. Two
// writers of one prefix do not disturb each other: each has temporary names of its own and the last
// commit wins. Lengths and documents wait on disk: memory does not grow with the corpus. A full
// disk is a std::runtime_error that says how many bytes are needed.
class IndexedWriter {
 public:
  // The older formats are written for those who ask; Megatron writes them as i32.
  IndexedWriter(const std::filesystem::path& prefix, TokenType type,
                CorpusFormat format = CorpusFormat::mmap);
  ~IndexedWriter();
  IndexedWriter(const IndexedWriter&) = delete;
  IndexedWriter& operator=(const IndexedWriter&) = delete;

  void append(const EncodedBatch& batch);
  void add_sequence(std::span<const TokenId> tokens);  // an id beyond the type is an Error
  void end_document();
  // Documents [first, last) of another corpus; copied as they are when the types agree.
  void append(const IndexedCorpus& corpus, std::int64_t first, std::int64_t last);
  void append(const IndexedCorpus& corpus);  // all documents
  // commit() notes it beside the corpus; without, it removes the note of an older corpus.
  void set_tokenizer(CorpusTokenizer tokenizer);
  void commit();

  std::int64_t num_tokens() const;
  std::int64_t num_sequences() const;
  std::int64_t num_documents() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bloomery
