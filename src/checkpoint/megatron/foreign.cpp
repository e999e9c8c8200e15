#include "checkpoint/megatron/foreign.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMegatronFile = "model_optim_rng.pt";
constexpr std::string_view kModelStates = "_model_states.pt";

template <class Match>
bool any_entry(const fs::path& folder, const Match& match) {
  const fs::directory_iterator entries(folder);
  return std::any_of(begin(entries), end(entries), match);
}

bool is_megatron(const fs::path& folder) {
  return any_entry(folder, [](const fs::directory_entry& entry) {
    return entry.path().filename().string().starts_with("mp_rank_") &&
           fs::exists(entry.path() / kMegatronFile);
  });
}

bool is_deepspeed(const fs::path& folder) {
  return any_entry(folder, [](const fs::directory_entry& entry) {
    return entry.path().filename().string().ends_with(kModelStates);
  });
}

// The first word of a small file.
std::string word(const fs::path& path) {
  constexpr std::uintmax_t kMost = 4096;
  check(fs::file_size(path) <= kMost, path.string(), " should hold one name, but has ",
        fs::file_size(path), " bytes");
  const std::string text = read_file(path);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  check(begin != text.npos, path.string(), " is empty");
  return text.substr(begin, text.find_first_of(" \t\r\n", begin) - begin);
}

fs::path named(const fs::path& folder, const fs::path& tracker, const std::string& name) {
  const fs::path path = folder / name;
  check(fs::path(name) == fs::path(name).filename() && fs::is_directory(path), tracker.string(),
        " names the checkpoint ", name, ", which is not there");
  return path;
}

std::string iteration_folder(const fs::path& tracker, const std::string& iteration) {
  constexpr std::size_t kDigits = 7;
  if (iteration == "release") {
    return iteration;
  }
  check(iteration.find_first_not_of("0123456789") == iteration.npos && iteration.size() < 19,
        tracker.string(), " holds no iteration but ", iteration);
  return "iter_" + std::string(kDigits - std::min(kDigits, iteration.size()), '0') + iteration;
}

}  // namespace

std::optional<fs::path> foreign_checkpoint(const fs::path& path) {
  if (!fs::is_directory(path)) {
    return std::nullopt;
  }
  if (is_megatron(path) || is_deepspeed(path)) {
    return path;
  }
  for (const char* name : {"latest", "latest_universal"}) {
    if (const fs::path tracker = path / name; fs::is_regular_file(tracker)) {
      return named(path, tracker, word(tracker));
    }
  }
  const fs::path tracker = path / "latest_checkpointed_iteration.txt";
  if (fs::is_regular_file(tracker)) {
    return named(path, tracker, iteration_folder(tracker, word(tracker)));
  }
  return std::nullopt;
}

QkvOrder qkv_order(double version, bool knows_fpdt, const ForeignReading& how,
                   const std::string& place) {
  check(version == 0 || version == 1 || version >= 2, place, ": unknown checkpoint_version ",
        version);
  if (how.qkv) {
    return *how.qkv;
  }
  if (knows_fpdt && version >= 2) {
    how.log.warning(place,
                    ": its arguments are of Megatron-DeepSpeed since December 2024 (FPDT), which "
                    "cuts fused queries, keys and values into thirds; they are read so. If its "
                    "program keeps them head by head: bloomery convert --qkv-layout heads");
    return QkvOrder::thirds;
  }
  return version == 0 ? QkvOrder::by_kind : version == 1 ? QkvOrder::by_channel : QkvOrder::by_head;
}

CheckpointReader open_foreign(const fs::path& checkpoint, const OpenBytes& open,
                              const ForeignReading& how) {
  check(fs::is_directory(checkpoint), checkpoint.string(), " is no folder");
  if (is_megatron(checkpoint)) {
    return open_megatron(checkpoint, open, how);
  }
  check(is_deepspeed(checkpoint), checkpoint.string(),
        " holds neither Megatron's nor DeepSpeed's files");
  return open_deepspeed(checkpoint, open, how);
}

}  // namespace bloomery
