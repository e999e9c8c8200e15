// Zip archives: stored and deflated entries, zip64 included. Sizes, places and
// checksums are checked before anything is believed; a bad archive is an Error that says what is
// wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace bloomery {

class ZipArchive {
 public:
  struct Entry {
    std::uint64_t size = 0;    // of the contents
    std::uint64_t packed = 0;  // bytes in the archive
    std::uint64_t offset = 0;  // of the entry's own header
    std::uint32_t checksum = 0;
    bool deflated = false;
  };

  // The bytes must outlive the archive.
  explicit ZipArchive(const ReadableBytes& bytes);

  const std::map<std::string, Entry>& entries() const { return entries_; }
  const Entry& entry(const std::string& name) const;  // throws when there is none

  // Where the contents of an entry lie; an Error when they are packed.
  std::uint64_t stored_at(const std::string& name) const;
  // Read, unpacked and checked.
  std::vector<std::byte> contents(const std::string& name) const;

 private:
  struct Directory {
    std::uint64_t count = 0, bytes = 0, offset = 0;
  };
  // A part of the archive in memory. Places are those of the archive.
  class Window;
  Directory find_directory() const;
  Directory find_zip64_directory(const Window& window, std::uint64_t end) const;
  std::uint64_t read_entry(const Window& window, std::uint64_t at, std::uint64_t end);
  void read_zip64_sizes(Entry& entry, std::span<const std::byte> extra,
                        const std::string& name) const;
  void require_checksum(const Entry& entry, std::span<const std::byte> contents,
                        const std::string& name) const;
  std::uint64_t begin_of(const Entry& entry, const std::string& name) const;
  std::vector<std::byte> packed(const Entry& entry, const std::string& name) const;
  std::vector<std::byte> inflate(std::span<const std::byte> from, const Entry& entry,
                                 const std::string& name) const;

  const ReadableBytes& bytes_;
  const std::string& source_;
  std::map<std::string, Entry> entries_;
};

}  // namespace bloomery
