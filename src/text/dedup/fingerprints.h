// The first two passes of removing duplicates: fingerprints of documents, and which are equal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "text/dedup/dedup.h"
#include "text/transform/transform_files.h"

namespace bloomery {

// Writes the fingerprints of a document as records of 64-bit words: its line, and with MinHash a
// key for each bucket; else 128 bits of hash, for paragraphs the number of the paragraph first.
std::unique_ptr<LineTransform> make_fingerprinter(const DedupOptions& options);

// The paragraphs of a text: what stands between line breaks. Blank ones count and are never equal.
std::vector<std::string_view> paragraphs(std::string_view text);

struct Fingerprints {
  std::vector<std::filesystem::path> files;   // of each input
  std::vector<std::uint64_t> first_document;  // of each input, and the end of the last
};

// Writes what is to be removed; returns the number of groups of equal ones. `folder` is for files
// that sorting needs.
std::int64_t find_removals(const DedupOptions& options, const Fingerprints& fingerprints,
                           const std::filesystem::path& folder,
                           const std::filesystem::path& removals);

}  // namespace bloomery
