#include "comm/start/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/temporary_name.h"
#include "comm/tcp/socket.h"

namespace bloomery {
namespace {

constexpr const char* kInstead =
    "; or give all ranks the same BLOOMERY_SECRET, `openssl rand -hex 16`";

std::filesystem::path file_of(const std::filesystem::path& folder, int port) {
  return folder / concat("start-", port);
}

void check_own(const std::filesystem::path& path, bool found, const struct stat& facts) {
  check(found, "cannot read ", path.string(), ": ", std::strerror(errno), kInstead);
  check(facts.st_uid == geteuid() && (facts.st_mode & 0077) == 0, path.string(),
        " is for the secrets of starts, but others may read or write it: remove it", kInstead);
}

// Has its name once it is whole, unless another rank was faster.
void make(const std::filesystem::path& path) {
  const std::string text = secret_text(random_secret()), temporary = temporary_name(path).string();
  const Socket file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const bool written = file && write(file.descriptor(), text.data(), text.size()) ==
                                   static_cast<ssize_t>(text.size());
  const bool made = written && link(temporary.c_str(), path.c_str()) == 0;
  const int problem = errno;
  unlink(temporary.c_str());
  check(made || (written && problem == EEXIST), "cannot write ", path.string(), ": ",
        std::strerror(problem), kInstead);
}

}  // namespace

std::filesystem::path secrets_folder() {
  std::error_code none;  // a TMPDIR that this machine lacks
  const std::filesystem::path temporary = std::filesystem::temp_directory_path(none);
  return (none ? "/tmp" : temporary) / concat("bloomery-", geteuid());
}

Secret shared_secret(const std::filesystem::path& folder, int port) {
  struct stat facts {};
  mkdir(folder.c_str(), 0700);  // the next line says why there is none
  check_own(folder, lstat(folder.c_str(), &facts) == 0, facts);
  const std::filesystem::path path = file_of(folder, port);
  if (lstat(path.c_str(), &facts) != 0) {
    make(path);
  }
  const Socket file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  check_own(path, file && fstat(file.descriptor(), &facts) == 0, facts);
  char text[64];
  const ssize_t count = read(file.descriptor(), text, sizeof text);
  return secret_from(std::string(text, static_cast<std::size_t>(std::max<ssize_t>(count, 0))));
}

void forget_secret(const std::filesystem::path& folder, int port) {
  unlink(file_of(folder, port).c_str());
}

}  // namespace bloomery
