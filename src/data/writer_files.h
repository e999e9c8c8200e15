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

#include "base/file.h"
#include "data/indexed_corpus.h"

namespace bloomery {

// In the folder of a corpus, held while the files of a pair change: two writers of one prefix do so
// one after the other.
inline constexpr const char* kCorpusLock = ".bloomery.lock";

// Gathers small writes into large ones.
class BufferedBytes {
 public:
  virtual ~BufferedBytes() = default;
  void write(std::span<const std::byte> bytes);
  void flush();
  std::uint64_t size() const { return size_; }  // of all that was given, written or not

 protected:
  virtual void put(std::span<const std::byte> bytes) = 0;

 private:
  std::vector<std::byte> buffer_;
  std::uint64_t size_ = 0;
};

class BufferedFile : public BufferedBytes {
 public:
  explicit BufferedFile(const std::filesystem::path& path) : file_(path) {}
  AtomicFile& file() { return file_; }

 private:
  void put(std::span<const std::byte> bytes) override { file_.write(bytes.data(), bytes.size()); }
  AtomicFile file_;
};

// A file without a name, so that nothing remains of it however the process ends.
class SpillFile : public BufferedBytes {
 public:
  explicit SpillFile(const std::filesystem::path& beside);
  ~SpillFile() override;
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  // Calls body with the contents, piece after piece of whole values of T.
  template <class T, class Body>
  void for_each_piece(const Body& body) {
    flush();
    std::vector<T> piece;
    constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
    for (std::uint64_t at = 0; at < size(); at += kPiece) {
      piece.resize(static_cast<std::size_t>(std::min(kPiece, size() - at)) / sizeof(T));
      read(at, std::as_writable_bytes(std::span(piece)));
      body(std::span<const T>(piece));
    }
  }
  // Of what was flushed.
  void read(std::uint64_t offset, std::span<std::byte> to) const;

 private:
  void put(std::span<const std::byte> bytes) override;

  std::filesystem::path path_;
  int descriptor_ = -1;
};

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
