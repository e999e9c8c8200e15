// The files behind an IndexedWriter: the .bin under a temporary name, and the lengths and document
// marks that wait in nameless files until the .idx can be written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/buffered_bytes.h"
#include "corpus/indexed_corpus.h"

namespace bloomery {

// In the folder of a corpus, held while the files of a pair change: two writers of one prefix do so
// one after the other.
inline constexpr const char* kCorpusLock = ".bloomery.lock";

class CorpusFiles {
 public:
  CorpusFiles(const std::filesystem::path& prefix, TokenType type, CorpusFormat format);

  BufferedBytes& tokens() { return bin_; }       // in the type of the file
  BufferedBytes& lengths() { return lengths_; }  // std::int32_t
  BufferedBytes& marks() { return marks_; }      // std::int64_t, where each document ends

  // Of the note beside the corpus.
  void set_tokenizer(CorpusTokenizer tokenizer) { tokenizer_ = std::move(tokenizer); }

  // Writes the .idx and gives both files their final names, and the note if there is one.
  void commit(std::int64_t sequences, std::int64_t documents, std::int64_t tokens);

  const std::filesystem::path& prefix() const { return prefix_; }
  // Of what was written so far, with its share of the .idx and what waits for it.
  std::uint64_t bytes_needed() const;
  std::uint64_t bytes_available() const;

 private:
  void write_mmap_index(BufferedBytes& idx, std::int64_t sequences, std::int64_t documents);
  void write_tnt_index(BufferedBytes& idx, std::int64_t sequences, std::int64_t documents,
                       std::int64_t tokens);
  void write_offsets(BufferedBytes& idx, std::int64_t unit);
  void write_marks(BufferedBytes& idx);

  std::filesystem::path prefix_;
  TokenType type_;
  CorpusFormat format_;
  BufferedFile bin_;
  SpillFile lengths_, marks_;
  std::optional<CorpusTokenizer> tokenizer_;
};

}  // namespace bloomery
