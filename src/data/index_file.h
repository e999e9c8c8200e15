// The arrays of an .idx, in either format, read where they lie: lengths and first tokens of the
// sequences, and the documents they make up. docs/formats.md describes the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>

#include "data/indexed_corpus.h"

namespace bloomery {

inline constexpr char kMmapMagic[] = "MMIDIDX\0";  // with the final zero of the literal: 9 bytes
inline constexpr char kTntMagic[] = "TNTIDX\0";    // 8 bytes
inline constexpr std::size_t kMmapHeader = 34, kTntHeader = 56;

// A value at any alignment. The files are little endian, as is every machine this runs on.
template <class T>
T load_value(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// A view of the bytes of an .idx, which must outlive it.
class IndexView {
 public:
  // Reads the header and places the arrays within `bytes`; `path` is for messages.
  IndexView(std::span<const std::byte> bytes, std::string path);

  CorpusFormat format() const { return format_; }
  TokenType type() const { return type_; }
  std::int64_t num_sequences() const { return num_sequences_; }
  std::int64_t num_marks() const { return num_marks_; }  // documents + 1

  std::int64_t length(std::int64_t sequence) const {
    const std::byte* at = lengths_ + sequence * (is_mmap() ? 4 : 8);
    return is_mmap() ? load_value<std::int32_t>(at) : load_value<std::int64_t>(at);
  }
  // Where a sequence starts: in bytes in the mmap format, in tokens in the older one.
  std::int64_t offset(std::int64_t sequence) const {
    return load_value<std::int64_t>(offsets_ + sequence * 8);
  }
  std::int64_t mark(std::int64_t document) const {
    return load_value<std::int64_t>(marks_ + document * 8);
  }

  std::int64_t first_token(std::int64_t sequence) const {
    const auto unit = static_cast<std::int64_t>(is_mmap() ? size_of(type_) : 1);
    return offset(sequence) / unit;
  }

  // What a full scan finds.
  struct Totals {
    std::int64_t tokens = 0, empty_documents = 0;
  };
  // Checks every entry of the arrays against the others and against a .bin of `bin_bytes` bytes, on
  // all cores when there are many. Calls release(begin, end) for bytes of the index that it is done
  // with, from any thread.
  using Release = std::function<void(std::size_t begin, std::size_t end)>;
  Totals check_arrays(std::uint64_t bin_bytes, const Release& release) const;

 private:
  bool is_mmap() const { return format_ == CorpusFormat::mmap; }
  void read_mmap_header();
  void read_tnt_header();
  void set_counts(std::uint64_t sequences, std::uint64_t marks, std::uint64_t header,
                  std::uint64_t per_sequence, std::uint64_t further);
  void check_sequences(std::int64_t begin, std::int64_t end, std::uint64_t bin_bytes) const;
  std::int64_t check_documents(std::int64_t begin, std::int64_t end) const;

  std::span<const std::byte> bytes_;
  std::string path_;
  CorpusFormat format_ = CorpusFormat::mmap;
  TokenType type_ = TokenType::u16;
  std::int64_t num_sequences_ = 0, num_marks_ = 0;
  const std::byte *lengths_ = nullptr, *offsets_ = nullptr, *marks_ = nullptr;
  const std::byte* dimensions_ = nullptr;  // of the older format: running count of dimensions
};

}  // namespace bloomery
