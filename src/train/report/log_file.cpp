#include "train/report/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>

#include "base/error.h"

namespace bloomery {
namespace {

void check_call(bool success, const char* action, const std::filesystem::path& path) {
  check(success, "cannot ", action, " ", path.string(), ": ", std::strerror(errno));
}

bool ends_within_a_line(int descriptor, const struct stat& status) {
  char last = '\n';
  return S_ISREG(status.st_mode) && status.st_size > 0 &&
         pread(descriptor, &last, 1, status.st_size - 1) == 1 && last != '\n';
}

}  // namespace

LogFile::LogFile(Settings settings) : settings_(std::move(settings)) {}

LogFile::~LogFile() {
  flush();
  close();
}

void LogFile::add(std::string record) {
  waiting_bytes_ += record.size();
  waiting_.push_back(std::move(record));
  for (; waiting_bytes_ > settings_.most_waiting && waiting_.size() > 1; ++given_up_) {
    waiting_bytes_ -= waiting_.front().size();
    waiting_.pop_front();
  }
}

bool LogFile::flush() {
  try {
    if (descriptor_ >= 0 && !is_at_its_name()) {
      close();
    }
    std::string bytes = descriptor_ < 0 ? open() : "";
    for (const std::string& record : waiting_) {
      bytes += record;
    }
    write(bytes);
  } catch (const std::exception& error) {
    close();  // a server that came back does not know this descriptor any more
    if (is_new_) {
      unlink(path_.c_str());  // else every try on a full disk could leave another empty file
    }
    if (!failing_ && settings_.warn) {
      settings_.warn(concat(error.what(),
                            "; training goes on, and what is missing is written when "
                            "that works again"));
    }
    failing_ = true;
    return false;
  }
  is_new_ = false;
  waiting_.clear();
  waiting_bytes_ = 0;
  if (failing_ && settings_.warn) {
    settings_.warn(concat(
        path_.string(), " can be written again; ",
        given_up_ > 0 ? concat(given_up_, " records of it are lost") : "nothing of it is lost"));
  }
  failing_ = false;
  given_up_ = 0;
  return true;
}

std::string LogFile::open() {
  is_new_ = false;  // nor is a file that cannot be opened ours to delete
  path_ = settings_.name();
  if (path_.has_parent_path()) {
    // One level: a folder further up that is missing is a disk that is not mounted.
    std::error_code failed;
    std::filesystem::create_directory(path_.parent_path(), failed);
  }
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  check_call(descriptor_ >= 0, "write to", path_);
  struct stat status {};
  check_call(fstat(descriptor_, &status) == 0, "look at", path_);
  is_new_ = S_ISREG(status.st_mode) && status.st_size == 0;
  return is_new_                                                      ? settings_.header
         : settings_.lines && ends_within_a_line(descriptor_, status) ? "\n"
                                                                      : "";
}

void LogFile::close() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    descriptor_ = -1;
  }
}

bool LogFile::is_at_its_name() const {
  struct stat own {
  }, there{};
  return fstat(descriptor_, &own) == 0 && stat(path_.c_str(), &there) == 0 &&
         own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

void LogFile::write(const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::write(descriptor_, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno != EINTR) {
      const int error = errno;
      take_back(done);
      errno = error;
      check_call(false, "write to", path_);
    }
    done += written > 0 ? static_cast<std::size_t>(written) : 0;
  }
}

void LogFile::take_back(std::size_t bytes) const {
  struct stat status {};
  if (bytes > 0 && fstat(descriptor_, &status) == 0) {
    const int failed = ftruncate(descriptor_, status.st_size - static_cast<off_t>(bytes));
    static_cast<void>(failed);  // then a part of a record remains, which readers recognise
  }
}

}  // namespace bloomery
