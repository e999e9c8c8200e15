// Zip archives of stored entries, with zip64 where sizes ask for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace bloomery {

class ZipWriter {
 public:
  // The file must outlive the writer.
  explicit ZipWriter(AtomicFile& file) : file_(file) {}

  void add(const std::string& name, std::span<const std::byte> contents);
  // An entry of known size whose contents come in pieces.
  void begin(const std::string& name, std::uint64_t size);
  void append(std::span<const std::byte> contents);
  void end();
  // Writes the directory.
  void finish();

 private:
  struct Entry {
    std::string name;
    std::uint64_t size, offset;
    std::uint32_t checksum = 0;  // of what was appended
  };
  void put(const std::string& bytes);

  AtomicFile& file_;
  std::uint64_t at_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace bloomery
