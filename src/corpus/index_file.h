// The arrays of an .idx, in either format: lengths and first tokens of the
// sequences, and the documents they make up. docs/formats.md describes the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "corpus/indexed_corpus.h"

namespace bloomery {

inline constexpr char kMmapMagic[] = "MMIDIDX\0";  // with the final zero of the literal: 9 bytes
inline constexpr char kTntMagic[] = "TNTIDX\0";    // 8 bytes
inline constexpr std::size_t kMmapHeader = 34, kTntHeader = 56;

// Reads bytes [offset, offset + size) of an .idx, or throws an Error.
using ReadIndex = std::function<void(std::uint64_t offset, void* to, std::size_t size)>;

// The arrays of an .idx, read where they are wanted: nothing is mapped, so that a file which is cut
// short by someone else is an Error instead of a signal. Shared by threads.
class IndexArrays {
 public:
  // Reads the header and places the arrays within the file's `size` bytes; `path` is for messages.
  IndexArrays(ReadIndex read, std::uint64_t size, std::string path);

  CorpusFormat format() const { return format_; }
  TokenType type() const { return type_; }
  std::int64_t num_sequences() const { return num_sequences_; }
  std::int64_t num_marks() const { return num_marks_; }  // documents + 1

  std::vector<std::int64_t> lengths(std::int64_t begin, std::int64_t end) const;
  // Where sequences start: in bytes in the mmap format, in tokens in the older one, which has one
  // entry more.
  std::vector<std::int64_t> offsets(std::int64_t begin, std::int64_t end) const;
  std::vector<std::int64_t> marks(std::int64_t begin, std::int64_t end) const;

  SequencePlace place(std::int64_t sequence) const;

  // What a full scan finds.
  struct Totals {
    std::int64_t tokens = 0, empty_documents = 0;
  };
  // Checks every entry of the arrays against the others and against a .bin of `bin_bytes` bytes, on
  // all cores when there are many.
  Totals check_arrays(std::uint64_t bin_bytes) const;

 private:
  bool is_mmap() const { return format_ == CorpusFormat::mmap; }
  void read_mmap_header(const std::vector<std::byte>& head);
  void read_tnt_header(const std::vector<std::byte>& head);
  void set_counts(std::uint64_t sequences, std::uint64_t marks, std::uint64_t header,
                  std::uint64_t per_sequence, std::uint64_t further);
  void check_sequences(std::int64_t begin, std::int64_t end, std::uint64_t bin_bytes) const;
  std::int64_t check_documents(std::int64_t begin, std::int64_t end) const;

  template <class T>
  std::vector<T> read(std::uint64_t offset, std::int64_t count) const;

  ReadIndex read_;
  std::uint64_t size_;
  std::string path_;
  CorpusFormat format_ = CorpusFormat::mmap;
  TokenType type_ = TokenType::u16;
  std::int64_t num_sequences_ = 0, num_marks_ = 0;
  // Bytes of the file at which the arrays start. The older format also counts dimensions.
  std::uint64_t lengths_ = 0, offsets_ = 0, marks_ = 0, dimensions_ = 0;
};

}  // namespace bloomery
