#include "apps/launch/jobs/staging.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "apps/launch/jobs/shell_text.h"
#include "base/error.h"

namespace bloomery {
namespace {

std::string name_of(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// Where in the word a path begins that is `path` or below it; npos: nowhere.
std::size_t start_of_path(const std::string& word, const std::string& path) {
  const std::size_t start = word.starts_with("--") ? word.find('=') + 1 : 0;
  if (word.starts_with("--") && start == 0) {
    return std::string::npos;
  }
  const bool found = word.compare(start, path.size(), path) == 0 &&
                     (word.size() == start + path.size() || word[start + path.size()] == '/');
  return found ? start : std::string::npos;
}

struct Piece {
  std::string before, behind;  // of the folder with the copies
  bool staged = false;
};

Piece piece_of(const std::string& word, const std::vector<std::string>& staged) {
  for (const std::string& path : staged) {
    const std::size_t start = start_of_path(word, path);
    if (start != std::string::npos) {
      return {word.substr(0, start), "/" + name_of(path) + word.substr(start + path.size()), true};
    }
  }
  return {word, "", false};
}

}  // namespace

std::vector<std::string> staged_paths(const JobOptions& options, const Arguments& command) {
  std::vector<std::string> paths;
  std::set<std::string> names;
  for (std::string path : split_list(options.stage, ',')) {
    while (path.size() > 1 && path.back() == '/') {
      path.pop_back();
    }
    const bool used = std::ranges::any_of(command, [&](const std::string& word) {
      return start_of_path(word, path) != std::string::npos;
    });
    check(used, "--stage ", path,
          ": no word of the command names it; give the path as it stands there");
    check(names.insert(name_of(path)).second, "--stage: two paths end in ", name_of(path),
          ", and the copies would have one name; stage their folder instead");
    paths.push_back(path);
  }
  const std::string& folder = options.stage_folder;
  check(paths.empty() || folder.starts_with("/"), "--stage-folder '", folder,
        "' is no absolute path");
  return paths;
}

std::vector<std::string> shell_words(const Job& job, const std::string& folder) {
  std::vector<std::string> words;
  for (const std::string& word : job.command) {
    const Piece piece = piece_of(word, job.staged);
    words.push_back(!piece.staged ? shell_word(word)
                                  : (piece.before.empty() ? "" : shell_word(piece.before)) +
                                        folder + shell_word(piece.behind));
  }
  return words;
}

std::vector<std::string> plain_words(const Job& job, const std::string& folder) {
  std::vector<std::string> words;
  for (const std::string& word : job.command) {
    const Piece piece = piece_of(word, job.staged);
    words.push_back(piece.staged ? piece.before + folder + piece.behind : word);
  }
  return words;
}

}  // namespace bloomery
