// Files: read whole, in pieces or mapped, and written so that a final name never holds a part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace bloomery {

std::string read_file(const std::filesystem::path& path);

// The contents of a file for a short while: mapped, so that nothing is copied and the pages cost
// little, or read where that cannot be (a pipe). Not for files that others may cut short meanwhile:
// reading on would be a signal.
class FileText {
 public:
  explicit FileText(const std::filesystem::path& path);
  ~FileText();
  FileText(const FileText&) = delete;
  FileText& operator=(const FileText&) = delete;
  operator std::string_view() const { return text_; }

 private:
  std::string read_;
  std::string_view text_;
  void* mapped_ = nullptr;
};

// With AtomicFile: the name holds all of the text or what it held before.
void write_file(const std::filesystem::path& path, std::string_view text);

// Bytes that any thread can read at any place.
class ReadableBytes {
 public:
  virtual ~ReadableBytes() = default;
  virtual const std::string& name() const = 0;  // for messages
  virtual std::uint64_t size() const = 0;
  // All of [offset, offset + bytes), else an Error; a disk that fails is a std::runtime_error.
  virtual void read(std::uint64_t offset, void* to, std::size_t bytes) const = 0;
};

// A file, not mapped: what was read does not count as memory of this process, and a file cut short
// by someone else is an Error instead of a signal.
class InputFile final : public ReadableBytes {
 public:
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile() override;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::string& name() const override { return path_.native(); }
  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t offset, void* to, std::size_t bytes) const override;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

// Bytes in memory, which must outlive this object.
class MemoryBytes final : public ReadableBytes {
 public:
  MemoryBytes(std::span<const std::byte> bytes, std::string name)
      : bytes_(bytes), name_(std::move(name)) {}
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t offset, void* to, std::size_t bytes) const override;

 private:
  std::span<const std::byte> bytes_;
  std::string name_;
};

// The file system has no room for what is being written. Not an Error: the input was good.
class DiskFull : public std::runtime_error {
 public:
  // `missing`: bytes of the write that found no room; 0: not known.
  DiskFull(const std::filesystem::path& path, std::uint64_t missing);
};

bool means_disk_full(int error);  // an errno

// Throws for the call that set errno: DiskFull, else a std::runtime_error "cannot ACTION PATH:
// why".
[[noreturn]] void throw_failure(const char* action, const std::filesystem::path& path,
                                std::uint64_t missing = 0);
// All bytes, through interruptions. `path` is for messages.
void write_whole(int descriptor, const void* data, std::size_t bytes,
                 const std::filesystem::path& path);
// All of [offset, offset + bytes); a file that ends before is an Error.
void read_whole(int descriptor, std::uint64_t offset, void* to, std::size_t bytes,
                const std::filesystem::path& path);

// Writes to a file without a name, or a temporary one where the file system has no such files, in
// the same folder; commit() makes the contents durable, then gives them the final name. Without
// commit() nothing remains. Failures to write are std::runtime_error, DiskFull among them; a folder
// that cannot be written to is an Error.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // At a place of the file; write() goes on where it was.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  // Makes the contents durable under a temporary name: what can fail before several files are
  // committed one after another.
  void sync();
  void commit();

 private:
  void name_temporarily();

  std::filesystem::path path_, temporary_;  // the latter empty while the file has no name
  int descriptor_ = -1;
};

}  // namespace bloomery
