// What is to be removed from a corpus, in the order of the corpus, on disk.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/file.h"

namespace bloomery {

struct Removal {
  static constexpr std::uint64_t kWhole = UINT64_MAX;

  std::uint64_t document = 0;      // of all inputs together
  std::uint64_t part = kWhole;     // a paragraph of it, or all
  std::uint64_t duplicate_of = 0;  // the document that stays

  auto operator<=>(const Removal&) const = default;
};

// Ascending; appears under its name when it is whole.
class RemovalWriter {
 public:
  explicit RemovalWriter(const std::filesystem::path& path) : file_(path) {}
  void add(const Removal& removal);
  void commit();

 private:
  AtomicFile file_;
  std::vector<Removal> pending_;
};

// Reads on from document to document. Of one thread.
class RemovalReader {
 public:
  explicit RemovalReader(const std::filesystem::path& path);

  void seek(std::uint64_t document);
  // The removals of a document that does not lie before the one of the last call.
  const std::vector<Removal>& of(std::uint64_t document);

 private:
  Removal at(std::uint64_t index);

  InputFile file_;
  const std::uint64_t count_;
  std::uint64_t next_ = 0;
  std::uint64_t loaded_from_ = 0;
  std::vector<Removal> loaded_, found_;
};

}  // namespace bloomery
