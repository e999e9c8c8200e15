#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/block_io.h"
#include "base/error.h"

namespace bloomery {
namespace {

// Where a file system has no files without names, one that loses its name at once.
int open_unnamed(const std::string& folder) {
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) {
    return file;
  }
  std::string name = folder + "/bloomery-offload-XXXXXX";
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) {
    unlink(name.c_str());
  }
  return named;
}

}  // namespace

ScratchFile::ScratchFile(const std::string& folder, std::size_t bytes) : folder_(folder) {
  descriptor_ = open_unnamed(folder);
  check(descriptor_ >= 0, folder, ": no file can be made there: ", std::strerror(errno),
        "; give another folder for offloaded state");
  const auto size = static_cast<off_t>(bytes);
  int status = posix_fallocate(descriptor_, 0, size);
  if (status == EOPNOTSUPP || status == EINVAL) {
    status = ftruncate(descriptor_, size) == 0 ? 0 : errno;
  }
  if (status != 0) {
    close(descriptor_);
    throw Error(concat(folder, ": no room for ", bytes >> 20, " MiB of offloaded state: ",
                       std::strerror(status), "; make room, or give another folder"));
  }
  const int flags = fcntl(descriptor_, F_GETFL);
  direct_ = fcntl(descriptor_, F_SETFL, flags | O_DIRECT) == 0;
}

ScratchFile::~ScratchFile() { close(descriptor_); }

void ScratchFile::leave_direct() {
  fcntl(descriptor_, F_SETFL, fcntl(descriptor_, F_GETFL) & ~O_DIRECT);
  direct_ = false;
}

}  // namespace bloomery
