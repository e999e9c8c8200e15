// Bytes read from front to back, from a file, a pipe or a decompressor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace bloomery {

// How messages name an input; "-" is standard input.
std::string shown_name(const std::string& path);

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills the front of `to`, which is not empty, and returns how much; 0 only at the end.
  virtual std::size_t read(std::span<char> to) = 0;
};

// A file, or standard input for "-".
class FileSource : public ByteSource {
 public:
  explicit FileSource(const std::string& path);
  ~FileSource() override;
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  std::size_t read(std::span<char> to) override;

  const std::string& name() const { return name_; }
  std::uint64_t position() const { return position_; }  // bytes read so far
  // Once *stop is true, a read that would wait for a pipe answers with the end instead.
  void stop_when(const std::atomic<bool>* stop) { stop_ = stop; }

 private:
  bool wait_for_input() const;

  std::string name_;
  int descriptor_;
  bool may_wait_;
  std::uint64_t position_ = 0;
  const std::atomic<bool>* stop_ = nullptr;
};

enum class Compression { none, gzip, xz, zstd };

// By the magic number that the bytes begin with.
Compression recognise_compression(std::string_view head);

// The bytes of `from` after undoing whatever compression they have, recognised by content.
// Concatenated members, streams and frames give their contents one after another. Damaged or cut
// off data is an Error that names the file.
std::unique_ptr<ByteSource> decompressed(std::unique_ptr<FileSource> from);

// All of a text file, decompressed, without the mark of byte order that some begin with. One of
// more bytes is an Error.
inline constexpr std::size_t kMostReadWhole = std::size_t{4} << 30;
std::string read_decompressed(const std::string& path, std::size_t most = kMostReadWhole);

}  // namespace bloomery
