#include "samples/index_files.h"

#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/md5.h"
#include "base/temporary_folder.h"
#include "base/user_cache.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool same_bytes(const fs::path& left, const fs::path& right) {
  const InputFile a(left), b(right);
  if (a.size() != b.size()) {
    return false;
  }
  constexpr std::uint64_t kAtOnce = 1 << 20;
  std::string from_a, from_b;
  for (std::uint64_t at = 0; at < a.size(); at += kAtOnce) {
    from_a.resize(std::min(kAtOnce, a.size() - at));
    from_b.resize(from_a.size());
    a.read(at, from_a.data(), from_a.size());
    b.read(at, from_b.data(), from_b.size());
    if (from_a != from_b) {
      return false;
    }
  }
  return true;
}

// One folder's files: the stem itself, and further stems for when files of other contents, or
// damaged ones, have it.
class Place {
 public:
  using Action = std::function<void(const fs::path& stem)>;

  Place(const IndexFiles& files, fs::path folder, const Action& build, const Action& map,
        const Log& log)
      : files_(files),
        folder_(std::move(folder)),
        key_("bloomery index 1\n" + files.contents),
        build_(build),
        map_(map),
        log_(log) {}

  bool try_to_map() const {
    for (int i = 0; i < kMostStems; ++i) {
      if (state(stem(i)) == State::ours && try_to_map(stem(i))) {
        return true;
      }
    }
    return false;
  }

  void build() const {
    const auto tell = [&](const std::string& holder) {
      log_.info("waiting for ", holder, ", which builds ", files_.what, " in ", folder_.string());
    };
    const FileLock lock(folder_ / ("." + files_.stem + ".lock"),
                        {.longest = files_.longest_wait, .on_wait = tell});
    if (try_to_map()) {  // of many that start together the first has built it
      return;
    }
    const fs::path made = vacant_stem();
    build_(made);
    if (!files_.description.empty()) {
      write_file(with_suffix(made, ".dsc"), files_.description);
    }
    const fs::path used = stem_after_comparison(made);
    write_file(with_suffix(used, ".key"), key_);
    map_(used);
  }

 private:
  enum class State {
    vacant,   // nothing, or what a builder that was killed has left
    foreign,  // complete, without a key
    other,    // of other contents, or no longer complete
    ours
  };
  static constexpr int kMostStems = 8;

  fs::path stem(int i) const {
    std::string name = files_.stem;
    if (i > 0) {
      name += "." + md5_hex(key_).substr(0, 16) + (i > 1 ? concat(".", i) : "");
    }
    return folder_ / name;
  }

  std::vector<fs::path> paths(const fs::path& stem) const {
    std::vector<fs::path> all;
    for (const std::string& suffix : files_.suffixes) {
      all.push_back(with_suffix(stem, suffix));
    }
    if (!files_.description.empty()) {
      all.push_back(with_suffix(stem, ".dsc"));
    }
    return all;
  }

  State state(const fs::path& stem) const {
    const bool complete = std::ranges::all_of(paths(stem), is_file);
    if (const fs::path key = with_suffix(stem, ".key"); is_file(key)) {
      return complete && read_file(key) == key_ ? State::ours : State::other;
    }
    return complete ? State::foreign : State::vacant;
  }

  bool try_to_map(const fs::path& stem) const {
    try {
      map_(stem);
      return true;
    } catch (const Error& error) {
      log_.warning(files_.what, " is built again because it is damaged: ", error.what(),
                   "; remove ", stem.string(), "*");
      return false;
    }
  }

  fs::path vacant_stem() const {
    for (int i = 0; i < kMostStems; ++i) {
      if (state(stem(i)) == State::vacant) {
        return stem(i);
      }
    }
    throw Error(concat("there are ", kMostStems, " sets of files ", stem(0).string(),
                       "*, none of which can be used; remove them"));
  }

  // Keeps Megatron's files, which have no key, if the ones just made are the same.
  fs::path stem_after_comparison(const fs::path& made) const {
    const fs::path foreign = stem(0);
    if (made == foreign || state(foreign) != State::foreign) {
      return made;
    }
    const std::vector<fs::path> theirs = paths(foreign), ours = paths(made);
    if (!std::ranges::equal(theirs, ours, same_bytes)) {
      log_.warning(foreign.string(), "* belong to other data than ", files_.what,
                   " and are not used");
      return made;
    }
    for (const fs::path& path : ours) {
      fs::remove(path);
    }
    return foreign;
  }

  const IndexFiles& files_;
  fs::path folder_;
  std::string key_;
  const Action& build_;
  const Action& map_;
  const Log& log_;
};

}  // namespace

fs::path with_suffix(const fs::path& stem, const std::string& suffix) {
  fs::path path = stem;
  return path += suffix;
}

std::vector<fs::path> index_places(const fs::path& beside, const std::string& cache_folder) {
  std::vector<fs::path> places{beside.empty() ? "." : beside};
  if (!cache_folder.empty()) {
    places.emplace_back(cache_folder);
  }
  if (const fs::path cache = user_cache(); !cache.empty()) {
    places.push_back(cache / "index");
  }
  return places;
}

bool is_writable_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return std::filesystem::is_directory(folder, error) && access(folder.c_str(), W_OK | X_OK) == 0;
}

void open_or_build(const IndexFiles& files, const std::function<void(const fs::path&)>& build,
                   const std::function<void(const fs::path&)>& map, const Log& log) {
  const auto at = [&](const fs::path& folder) { return Place(files, folder, build, map, log); };
  for (const fs::path& folder : files.places) {
    if (at(folder).try_to_map()) {
      return;
    }
  }
  const auto place = std::ranges::find_if(files.build_places, is_writable_folder);
  if (place == files.build_places.end()) {
    log.warning("cannot write ", files.what, " to ", files.build_places.front().string(),
                "; it is built for this process only, and again at every start; give "
                "--data-cache-path a folder that can be written to");
    const TemporaryFolder temporary;
    at(temporary.path()).build();
    return;
  }
  if (place != files.build_places.begin()) {
    log.warning("cannot write ", files.what, " to ", files.build_places.front().string(),
                "; it is kept in ", place->string(), "; --data-cache-path chooses another folder");
  }
  at(*place).build();
}

}  // namespace bloomery
