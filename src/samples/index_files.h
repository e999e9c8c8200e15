// Index files that many processes want and one builds: Megatron-DeepSpeed's names, beside the data
// or in a cache, and never one made of other data (docs/formats.md, "Index files").
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/log.h"

namespace bloomery {

struct IndexFiles {
  std::string what;                   // for messages: "the index of PREFIX"
  std::string stem;                   // of the files' names
  std::vector<std::string> suffixes;  // the names are the stem with each of these
  std::string description;            // of STEM.dsc, Megatron's; empty: no such file
  // Everything that the files are functions of and that their name does not say.
  std::string contents;
  std::vector<std::filesystem::path> places;        // folders to look in, in order
  std::vector<std::filesystem::path> build_places;  // the first that can be written to is used
  std::chrono::milliseconds longest_wait = std::chrono::hours(2);  // for another builder
};

// `map` opens the files of a stem, which includes the folder, and throws an Error when they are not
// what it needs; `build` writes them. Files whose STEM.key says other contents, and files that do
// not map, stay as they are, for someone may be using them: those that are wanted then get a name
// with a hash of their contents. Files without a key, which are Megatron's, are used if building
// gives the same bytes. Where no place can be written to, the files are built in a temporary folder
// and must stay readable after it is gone.
void open_or_build(const IndexFiles& files,
                   const std::function<void(const std::filesystem::path& stem)>& build,
                   const std::function<void(const std::filesystem::path& stem)>& map,
                   const Log& log);

// STEM + SUFFIX, without taking the stem's last dot for an extension.
std::filesystem::path with_suffix(const std::filesystem::path& stem, const std::string& suffix);

// The folders for index files: `beside` the data, `cache_folder` (--data-cache-path) if it is
// given, then the user's own cache for data that cannot be written to.
std::vector<std::filesystem::path> index_places(const std::filesystem::path& beside,
                                                const std::string& cache_folder);

// Makes the folder if need be. False when nothing can be written there.
bool is_writable_folder(const std::filesystem::path& folder);

}  // namespace bloomery
