#include "checkpoint/stored_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/log.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const char* action, const fs::path& path) {
  if (errno == ENOENT || errno == ENOTDIR) {
    throw DamagedFile(
        concat(path.parent_path().string(), ": damaged: it has no ", path.filename().string()));
  }
  throw std::system_error(errno, std::generic_category(),
                          concat("cannot ", action, " ", path.string()));
}

class Descriptor {
 public:
  explicit Descriptor(const fs::path& path) : number_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (number_ < 0) fail("open", path);
  }
  ~Descriptor() { close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

// Those that were used last stay open. A checkpoint has a file per rank, and a process by default
// 1,024 descriptors.
class OpenFiles {
 public:
  static OpenFiles& of_process() {
    static OpenFiles files;
    return files;
  }

  std::shared_ptr<const Descriptor> get(const void* owner, const fs::path& path) {
    {
      const std::scoped_lock lock(mutex_);
      const auto found = find(owner);
      if (found != recent_.end()) {
        recent_.splice(recent_.begin(), recent_, found);
        return recent_.front().second;
      }
    }
    auto opened = std::make_shared<const Descriptor>(path);
    const std::scoped_lock lock(mutex_);
    recent_.emplace_front(owner, opened);
    if (recent_.size() > kMost) recent_.pop_back();
    return opened;
  }

  void close(const void* owner) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(recent_, [&](const Entry& entry) { return entry.first == owner; });
  }

 private:
  static constexpr std::size_t kMost = 64;
  using Entry = std::pair<const void*, std::shared_ptr<const Descriptor>>;
  std::list<Entry>::iterator find(const void* owner) {
    return std::ranges::find(recent_, owner, &Entry::first);
  }

  std::mutex mutex_;
  std::list<Entry> recent_;
};

class StoredFile final : public ReadableBytes {
 public:
  explicit StoredFile(const fs::path& path) : path_(path) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) fail("inspect", path);
    if (!S_ISREG(status.st_mode)) {
      throw DamagedFile(concat(path.string(), ": damaged: it is no file"));
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
  ~StoredFile() override { OpenFiles::of_process().close(this); }
  StoredFile(const StoredFile&) = delete;
  StoredFile& operator=(const StoredFile&) = delete;

  const std::string& name() const override { return path_.native(); }
  std::uint64_t size() const override { return size_; }

  void read(std::uint64_t offset, void* to, std::size_t bytes) const override {
    const auto file = OpenFiles::of_process().get(this, path_);
    char* target = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t count = pread(file->number(), target, std::min<std::size_t>(bytes, 1 << 30),
                                  static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        const int error = errno;
        OpenFiles::of_process().close(this);  // the next try opens it anew: a handle may be stale
        errno = error;
        fail("read", path_);
      }
      if (count == 0) {
        throw DamagedFile(concat(path_.string(), ": damaged: it ends at byte ", offset, ", ", bytes,
                                 " bytes short"));
      }
      target += count;
      offset += static_cast<std::uint64_t>(count);
      bytes -= static_cast<std::size_t>(count);
    }
  }

 private:
  fs::path path_;
  std::uint64_t size_ = 0;
};

class PatientFile final : public ReadableBytes {
 public:
  PatientFile(std::unique_ptr<const ReadableBytes> file, Patience patience)
      : file_(std::move(file)), patience_(patience) {}

  const std::string& name() const override { return file_->name(); }
  std::uint64_t size() const override { return file_->size(); }
  void read(std::uint64_t offset, void* to, std::size_t bytes) const override {
    try {
      retry(gave_up_ ? Patience{.tries = 1} : patience_, [&] { file_->read(offset, to, bytes); });
    } catch (const std::system_error&) {
      gave_up_ = true;
      throw;
    }
  }

 private:
  const std::unique_ptr<const ReadableBytes> file_;
  const Patience patience_;
  mutable std::atomic<bool> gave_up_ = false;
};

}  // namespace

std::unique_ptr<const ReadableBytes> open_stored_file(const fs::path& path) {
  return std::make_unique<StoredFile>(path);
}

void retry(const Patience& patience, const std::function<void()>& action) {
  std::chrono::milliseconds pause = patience.first_pause;
  for (int left = patience.tries - 1;; --left, pause *= 2) {
    try {
      return action();
    } catch (const std::system_error& error) {
      if (left <= 0) throw;
      if (pause == patience.first_pause) Log().warning(error.what(), "; trying again");
    }
    std::this_thread::sleep_for(pause);
  }
}

OpenBytes patiently(OpenBytes open, Patience patience) {
  return [open = std::move(open), patience](const fs::path& path) {
    std::unique_ptr<const ReadableBytes> file;
    retry(patience, [&] { file = open(path); });
    return std::unique_ptr<const ReadableBytes>(
        std::make_unique<PatientFile>(std::move(file), patience));
  };
}

std::unique_ptr<const ReadableBytes> open_input_file(const fs::path& path) {
  return patiently(open_stored_file)(path);
}

}  // namespace bloomery
