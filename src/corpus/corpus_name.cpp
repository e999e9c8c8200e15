#include "corpus/corpus_name.h"

#include <algorithm>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/folder.h"
#include "config/nearest.h"
#include "corpus/indexed_corpus.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

// What cannot be looked at counts as there: opening it says what is wrong.
bool there(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return status.type() != fs::file_type::not_found;
}

bool is_corpus(const fs::path& prefix) {
  return there(idx_path(prefix)) && there(bin_path(prefix));
}

// Prefixes of the corpora of a folder, by name, as far as it can be read.
std::vector<std::string> corpora_in(const fs::path& folder) {
  std::set<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path prefix = fs::path(entry->path()).replace_extension();
    if (entry->path().extension() == ".idx" && is_corpus(prefix)) found.insert(prefix.string());
  }
  return {found.begin(), found.end()};
}

// "my" of my.txt, my.jsonl.gz and my.bin.
std::string without_endings(std::string name) {
  for (const char* ending :
       {".gz", ".xz", ".zst", ".zstd", ".bin", ".idx", ".txt", ".jsonl", ".json", ".ndjson"}) {
    if (name.ends_with(ending)) name.resize(name.size() - std::string_view(ending).size());
  }
  return name;
}

// Corpora that a name may stand for: all of the folder that it is, those that `preprocess` calls so
// with its key, or the one with nearly this name.
std::vector<std::string> meant_by(const fs::path& prefix) {
  std::error_code error;
  if (fs::is_directory(prefix, error)) return corpora_in(prefix);
  const fs::path folder = folder_of(prefix);
  const bool here = prefix.parent_path().empty();
  const std::string stem = without_endings(prefix.filename().string());
  std::vector<std::string> names, begin;
  for (const std::string& found : corpora_in(folder)) {
    const std::string name = fs::path(found).filename().string();
    const std::string shown = here ? name : (prefix.parent_path() / name).string();
    if (name == stem) return {shown};
    if (name.starts_with(stem + "_")) begin.push_back(shown);
    names.push_back(name);
  }
  if (!begin.empty() || stem.empty()) return begin;
  const std::string near = nearest(stem, names);
  if (near.empty()) return {};
  return {here ? near : (prefix.parent_path() / near).string()};
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    text += i == 0 ? "" : i + 1 == std::min(names.size(), kMost) ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace

std::string corpus_suggestion(const fs::path& prefix) {
  const std::vector<std::string> names = meant_by(prefix);
  return names.empty() ? "" : concat("; did you mean ", listed(names), "?");
}

std::string why_no_corpus(const fs::path& prefix) {
  const bool idx = there(idx_path(prefix)), bin = there(bin_path(prefix));
  if (idx && bin) return {};
  if (idx || bin) {
    const fs::path present = idx ? idx_path(prefix) : bin_path(prefix);
    const fs::path absent = idx ? bin_path(prefix) : idx_path(prefix);
    return concat(absent.string(), ": No such file, but ", present.string(),
                  " is there: complete the pair, or preprocess the text again");
  }
  const std::string what = concat("there is no corpus ", prefix.string(), " (",
                                  idx_path(prefix).string(), ": No such file)");
  if (const std::string meant = corpus_suggestion(prefix); !meant.empty()) return what + meant;
  std::error_code error;
  if (fs::is_regular_file(prefix, error)) {
    const std::string stem = without_endings(prefix.string());
    return concat(what, "; of a text make one first: bloomery preprocess --input ", prefix.string(),
                  " --output-prefix ", stem, " --tokenizer PATH, then name it ", stem,
                  "_text_document");
  }
  return concat(what, "; bloomery preprocess makes one of a text");
}

}  // namespace bloomery
