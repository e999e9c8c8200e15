// Many small writes as few large ones: into a file that appears when it is whole, or into one
// without a name that waits to be read again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/file.h"

namespace bloomery {

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

}  // namespace bloomery
