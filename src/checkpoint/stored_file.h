// How the files of a checkpoint are opened and read, and what may be wrong with them.
//
// Two things, which lead to different ends. Damage: the bytes are others than the manifest says, or
// fewer, or there are none. It is a DamagedFile, and an older checkpoint may serve instead. An
// error of the storage: it does not give the bytes at this time (EIO, ESTALE, EMFILE, EACCES),
// which says nothing about them. It is a std::system_error, may pass, and nothing is moved for it.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>

#include "base/error.h"
#include "base/file.h"

namespace bloomery {

class DamagedFile : public Error {
 public:
  using Error::Error;
};

// How files are opened: tests put storage that fails in between.
using OpenBytes = std::function<std::unique_ptr<const ReadableBytes>(const std::filesystem::path&)>;

// Opens a file, of which there may be more than a process may hold open: a few descriptors serve
// all such files of the process. Absent, or cut short later, is a DamagedFile.
std::unique_ptr<const ReadableBytes> open_stored_file(const std::filesystem::path& path);

// How long errors of the storage are taken for passing ones: after the first try the pauses double.
struct Patience {
  int tries = 8;
  std::chrono::milliseconds first_pause{100};  // 12.7 s in all
};

// Does `action` again while it throws a std::system_error, which comes out after the last try. The
// first one is a warning.
void retry(const Patience& patience, const std::function<void()>& action);

// Opens and reads by `open` with patience; a file that has used it up fails at once from then on.
OpenBytes patiently(OpenBytes open, Patience patience = {});

// What is used unless something else is given: open_stored_file() with patience.
std::unique_ptr<const ReadableBytes> open_input_file(const std::filesystem::path& path);

}  // namespace bloomery
