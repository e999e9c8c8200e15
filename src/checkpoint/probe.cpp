#include "checkpoint/probe.h"

#include <optional>
#include <sstream>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "base/folder.h"
#include "base/temporary_name.h"
#include "checkpoint/folder.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

// "+" and the text, or "-" and why there is none.
template <class Work>
std::string attempt(const Work& work) {
  try {
    return "+" + work();
  } catch (const std::exception& error) {
    return concat("-", error.what(), " (", this_process(), ")");
  }
}

std::vector<std::string> all_or_error(const fs::path& folder, std::vector<std::string> texts) {
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    check(texts[rank].starts_with('+'), "checkpoints cannot be saved in ", folder.string(),
          ": rank ", rank, " of those that save: ", texts[rank].substr(1));
    texts[rank].erase(0, 1);
  }
  return texts;
}

void write_probe(const fs::path& temporary, int rank, const Patience& patience) {
  retry(patience, [&] {
    if (!fs::is_directory(temporary)) {
      throw std::system_error(std::make_error_code(std::errc::no_such_file_or_directory),
                              concat("this machine does not see ", temporary.string(),
                                     ", which the first rank has made: --save must be on storage "
                                     "that all ranks share"));
    }
  });
  const fs::path file = temporary / concat("rank-", rank);
  write_file(file, "probe");
  fs::remove(file);
}

}  // namespace

SaveRoom probe_save_folder(const fs::path& folder, const SaveGroup& group, std::uint64_t bytes,
                           const Patience& patience) {
  std::optional<StagedFolder> staged;
  const std::string made = attempt([&]() -> std::string {
    if (group.rank != 0) {
      return "";
    }
    staged.emplace(folder / step_name(0));  // under a temporary name, which is cleared up as others
    return concat(free_space(folder).bytes, " ", staged->path().filename().string());
  });
  SaveRoom room;
  std::string name;
  std::istringstream(all_or_error(folder, group.gather(made)).front()) >> room.free >> name;
  const std::string written = attempt([&] {
    write_probe(folder / name, group.rank, patience);
    return std::to_string(bytes);
  });
  for (const std::string& each : all_or_error(folder, group.gather(written))) {
    room.needed += std::stoull(each);
  }
  check(room.needed <= room.free, "no room for a checkpoint in ", folder.string(), ": it takes ",
        room.needed, " bytes, ", room.free, " are free; make room or give another --save");
  return room;
}

}  // namespace bloomery
