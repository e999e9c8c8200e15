#include "text/input/decompress.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "text/input/file_kind.h"

namespace bloomery {
namespace {

class Plain : public ByteSource {
 public:
  explicit Plain(std::unique_ptr<CompressedInput> from) : from_(std::move(from)) {}

  std::size_t read(std::span<char> to) override {
    const std::string_view bytes = from_->available();
    const std::size_t count = std::min(bytes.size(), to.size());
    std::memcpy(to.data(), bytes.data(), count);
    from_->consume(count);
    return count;
  }

 private:
  std::unique_ptr<CompressedInput> from_;
};

}  // namespace

CompressedInput::CompressedInput(std::unique_ptr<FileSource> file)
    : file_(std::move(file)), buffer_(new char[kBytes]) {}

std::string_view CompressedInput::available() {
  if (begin_ == end_) {
    begin_ = 0;
    end_ = file_->read({buffer_.get(), kBytes});
  }
  return {buffer_.get() + begin_, end_ - begin_};
}

std::string_view CompressedInput::look_ahead(std::size_t count) {
  if (end_ - begin_ < count) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    while (end_ < count) {
      const std::size_t more = file_->read({buffer_.get() + end_, kBytes - end_});
      if (more == 0) {
        break;
      }
      end_ += more;
    }
  }
  return {buffer_.get() + begin_, end_ - begin_};
}

Compression recognise_compression(std::string_view head) {
  using namespace std::string_view_literals;
  if (head.starts_with("\x1F\x8B"sv)) {
    return Compression::gzip;
  }
  if (head.starts_with("\xFD"
                       "7zXZ\0"sv)) {
    return Compression::xz;
  }
  // A zstd frame, or one of the sixteen kinds of skippable frame that may come first.
  const bool skippable = head.size() >= 4 && (head[0] & '\xF0') == '\x50' &&
                         head.substr(1).starts_with("\x2A\x4D\x18");
  if (head.starts_with("\x28\xB5\x2F\xFD"sv) || skippable) {
    return Compression::zstd;
  }
  return Compression::none;
}

namespace {

// Whether more bytes may show a magic number, of which `head` has the beginning.
bool may_be_compressed(std::string_view head) {
  constexpr std::string_view kXz("\xFD\x37zXZ\0", 6);
  const auto begins = [&](std::string_view magic) { return magic.starts_with(head); };
  const bool skippable =
      (head[0] & '\xF0') == '\x50' && std::string_view("\x2A\x4D\x18").starts_with(head.substr(1));
  return begins("\x1F\x8B") || begins(kXz) || begins("\x28\xB5\x2F\xFD") || skippable;
}

}  // namespace

std::unique_ptr<ByteSource> decompressed(std::unique_ptr<FileSource> from) {
  auto input = std::make_unique<CompressedInput>(std::move(from));
  std::size_t seen = 0;
  std::string_view head;
  do {  // one byte after another: a pipe may wait for the answer to its first short line
    ++seen;
    head = input->look_ahead(seen).substr(0, seen);
  } while (head.size() == seen && may_be_compressed(head));
  switch (recognise_compression(head)) {
    case Compression::gzip:
      return gunzip(std::move(input));
    case Compression::xz:
      return unxz(std::move(input));
    case Compression::zstd:
      return unzstd(std::move(input));
    case Compression::none:
      break;
  }
  return std::make_unique<Plain>(std::move(input));
}

std::string read_decompressed(const std::string& path, std::size_t most) {
  const std::unique_ptr<ByteSource> source = decompressed(std::make_unique<FileSource>(path));
  std::string bytes;
  std::vector<char> buffer(1 << 16);
  while (const std::size_t count = source->read(buffer)) {
    bytes.append(buffer.data(), count);
    check(bytes.size() <= most, shown_name(path), " holds more than ", most,
          " bytes of text, which are read at once; divide it into several files");
  }
  check_is_text(path, std::string_view(bytes).substr(0, kHeadBytes), LineFormat::text);
  if (bytes.starts_with("\xEF\xBB\xBF")) {
    bytes.erase(0, 3);
  }
  return bytes;
}

}  // namespace bloomery
