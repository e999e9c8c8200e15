#include "checkpoint/pickle/zip_archive.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace bloomery {
namespace {

static_assert(std::endian::native == std::endian::little, "the format stores little-endian bytes");

constexpr std::uint32_t kEndMark = 0x06054b50, kZip64EndMark = 0x06064b50,
                        kZip64PlaceMark = 0x07064b50, kDirectoryMark = 0x02014b50,
                        kEntryMark = 0x04034b50;
constexpr std::uint64_t kEndBytes = 22, kZip64PlaceBytes = 20, kZip64EndBytes = 56,
                        kDirectoryBytes = 46, kEntryBytes = 30;
constexpr std::uint64_t kMaxComment = 65535;
constexpr std::uint64_t kMaxDirectory = std::uint64_t{64} << 20;  // of a million entries or so
constexpr std::uint16_t kStored = 0, kDeflated = 8, kEncrypted = 1, kZip64Extra = 1;
constexpr std::uint32_t kIn64Bits = 0xFFFFFFFF;
constexpr std::uint64_t kMaxDeflateRatio = 1032;  // a pair of codes gives at most 258 bytes

}  // namespace

class ZipArchive::Window {
 public:
  Window(const ReadableBytes& source, std::uint64_t first, std::uint64_t size)
      : source_(source), first_(first), bytes_(size) {
    source.read(first, bytes_.data(), bytes_.size());
  }

  // Little-endian, checked.
  template <class Number>
  Number number(std::uint64_t at) const {
    Number value;
    std::memcpy(&value, part(at, sizeof(Number)).data(), sizeof(Number));
    return value;
  }
  std::span<const std::byte> part(std::uint64_t at, std::uint64_t size) const {
    check(at >= first_ && at - first_ <= bytes_.size() && size <= bytes_.size() - (at - first_),
          source_.name(), ": the archive is cut off or damaged: it refers to byte ", at, " of ",
          source_.size());
    return std::span(bytes_).subspan(at - first_, size);
  }

 private:
  const ReadableBytes& source_;
  std::uint64_t first_;
  std::vector<std::byte> bytes_;
};

ZipArchive::ZipArchive(const ReadableBytes& bytes) : bytes_(bytes), source_(bytes.name()) {
  const Directory directory = find_directory();
  check(directory.offset <= bytes_.size() && directory.bytes <= bytes_.size() - directory.offset,
        source_, ": the archive is cut off: its directory of ", directory.bytes,
        " bytes should start at byte ", directory.offset, " of ", bytes_.size());
  check(directory.bytes <= kMaxDirectory, source_, ": the directory of the archive has ",
        directory.bytes, " bytes; at most ", kMaxDirectory, " are read");
  const Window window(bytes_, directory.offset, directory.bytes);
  std::uint64_t at = directory.offset;
  const std::uint64_t end = directory.offset + directory.bytes;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    at = read_entry(window, at, end);
  }
  check(at == end, source_, ": the archive is damaged: its directory has ", end - at,
        " bytes too many");
}

ZipArchive::Directory ZipArchive::find_directory() const {
  check(bytes_.size() >= kEndBytes, source_, ": not a zip archive: it has only ", bytes_.size(),
        " bytes");
  const std::uint64_t last = bytes_.size() - kEndBytes;
  const std::uint64_t first = last - std::min(last, kMaxComment);
  const std::uint64_t begin = first - std::min(first, kZip64PlaceBytes);
  const Window window(bytes_, begin, bytes_.size() - begin);
  for (std::uint64_t at = last + 1; at-- > first;) {
    if (window.number<std::uint32_t>(at) != kEndMark ||
        window.number<std::uint16_t>(at + 20) != bytes_.size() - at - kEndBytes) {
      continue;
    }
    const Directory found{.count = window.number<std::uint16_t>(at + 10),
                          .bytes = window.number<std::uint32_t>(at + 12),
                          .offset = window.number<std::uint32_t>(at + 16)};
    const bool zip64 = at >= kZip64PlaceBytes &&
                       window.number<std::uint32_t>(at - kZip64PlaceBytes) == kZip64PlaceMark;
    return zip64 ? find_zip64_directory(window, at) : found;
  }
  throw Error(concat(source_, ": the archive is cut off: its directory is not at the end"));
}

ZipArchive::Directory ZipArchive::find_zip64_directory(const Window& window,
                                                       std::uint64_t end) const {
  const auto at = window.number<std::uint64_t>(end - kZip64PlaceBytes + 8);
  check(at <= bytes_.size() && kZip64EndBytes <= bytes_.size() - at, source_,
        ": the archive is damaged: no directory record at byte ", at);
  const Window record(bytes_, at, kZip64EndBytes);
  check(record.number<std::uint32_t>(at) == kZip64EndMark, source_,
        ": the archive is damaged: no directory record at byte ", at);
  return {.count = record.number<std::uint64_t>(at + 32),
          .bytes = record.number<std::uint64_t>(at + 40),
          .offset = record.number<std::uint64_t>(at + 48)};
}

// Reads the directory's entry at `at`; returns where the next one starts.
std::uint64_t ZipArchive::read_entry(const Window& window, std::uint64_t at, std::uint64_t end) {
  check(kDirectoryBytes <= end - at && window.number<std::uint32_t>(at) == kDirectoryMark, source_,
        ": the archive is damaged: no entry at byte ", at, " of its directory");
  const auto flags = window.number<std::uint16_t>(at + 8),
             method = window.number<std::uint16_t>(at + 10);
  Entry entry{.size = window.number<std::uint32_t>(at + 24),
              .packed = window.number<std::uint32_t>(at + 20),
              .offset = window.number<std::uint32_t>(at + 42),
              .checksum = window.number<std::uint32_t>(at + 16),
              .deflated = method == kDeflated};
  const std::uint64_t name_bytes = window.number<std::uint16_t>(at + 28),
                      extra_bytes = window.number<std::uint16_t>(at + 30),
                      comment_bytes = window.number<std::uint16_t>(at + 32);
  const std::uint64_t next = at + kDirectoryBytes + name_bytes + extra_bytes + comment_bytes;
  check(next <= end, source_, ": the archive is damaged: an entry leaves its directory");
  const auto text = window.part(at + kDirectoryBytes, name_bytes);
  const std::string name(reinterpret_cast<const char*>(text.data()), name_bytes);
  read_zip64_sizes(entry, window.part(at + kDirectoryBytes + name_bytes, extra_bytes), name);
  check((flags & kEncrypted) == 0, source_, ": ", name, " is encrypted");
  check(method == kStored || method == kDeflated, source_, ": ", name, " is compressed by method ",
        method, "; only stored and deflated entries can be read");
  check(entry.deflated || entry.packed == entry.size, source_, ": ", name, " is stored in ",
        entry.packed, " bytes but should have ", entry.size);
  check(entry.packed <= bytes_.size() && entry.size / kMaxDeflateRatio <= entry.packed, source_,
        ": ", name, " of ", entry.packed, " bytes in the archive cannot have ", entry.size,
        " bytes");
  check(entries_.emplace(name, entry).second, source_, ": the archive has ", name, " twice");
  return next;
}

// Numbers that do not fit 32 bits follow in the extra field, in this order.
void ZipArchive::read_zip64_sizes(Entry& entry, std::span<const std::byte> extra,
                                  const std::string& name) const {
  while (extra.size() >= 4) {
    std::uint16_t head[2];
    std::memcpy(head, extra.data(), sizeof head);
    check(head[1] <= extra.size() - 4, source_, ": the extra field of ", name, " is damaged");
    std::span<const std::byte> field = extra.subspan(4, head[1]);
    extra = extra.subspan(4 + static_cast<std::size_t>(head[1]));
    if (head[0] != kZip64Extra) {
      continue;
    }
    for (std::uint64_t* value : {&entry.size, &entry.packed, &entry.offset}) {
      if (*value == kIn64Bits) {
        check(field.size() >= 8, source_, ": the extra field of ", name, " is damaged");
        std::memcpy(value, field.data(), 8);
        field = field.subspan(8);
      }
    }
    return;
  }
}

const ZipArchive::Entry& ZipArchive::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  check(found != entries_.end(), source_, ": the archive has no entry ", name);
  return found->second;
}

std::vector<std::byte> ZipArchive::contents(const std::string& name) const {
  const Entry& found = entry(name);
  std::vector<std::byte> bytes = packed(found, name);
  if (found.deflated) {
    bytes = inflate(bytes, found, name);
  }
  require_checksum(found, bytes, name);
  return bytes;
}

std::uint64_t ZipArchive::stored_at(const std::string& name) const {
  const Entry& found = entry(name);
  check(!found.deflated, source_, ": ", name,
        " is compressed, which no checkpoint of PyTorch is; save it again with torch.save");
  return begin_of(found, name);
}

std::uint64_t ZipArchive::begin_of(const Entry& entry, const std::string& name) const {
  check(entry.offset <= bytes_.size() && kEntryBytes <= bytes_.size() - entry.offset, source_,
        ": the archive is cut off: ", name, " starts at byte ", entry.offset, " of ",
        bytes_.size());
  const Window head(bytes_, entry.offset, kEntryBytes);
  check(head.number<std::uint32_t>(entry.offset) == kEntryMark, source_,
        ": the archive is damaged: ", name, " does not start at byte ", entry.offset);
  const std::uint64_t begin = entry.offset + kEntryBytes +
                              head.number<std::uint16_t>(entry.offset + 26) +
                              head.number<std::uint16_t>(entry.offset + 28);
  check(begin <= bytes_.size() && entry.packed <= bytes_.size() - begin, source_,
        ": the archive is cut off: ", name, " of ", entry.packed, " bytes starts at byte ", begin,
        " of ", bytes_.size());
  return begin;
}

std::vector<std::byte> ZipArchive::packed(const Entry& entry, const std::string& name) const {
  const std::uint64_t begin = begin_of(entry, name);
  std::vector<std::byte> bytes(entry.packed);
  bytes_.read(begin, bytes.data(), bytes.size());
  return bytes;
}

std::vector<std::byte> ZipArchive::inflate(std::span<const std::byte> from, const Entry& entry,
                                           const std::string& name) const {
  std::vector<std::byte> contents(entry.size);
  Bytef nowhere = 0;  // zlib wants a place even for no bytes
  z_stream stream{};
  check(inflateInit2(&stream, -MAX_WBITS) == Z_OK, "zlib cannot be started");
  int status = Z_OK;
  std::size_t read = 0, written = 0;
  while (status == Z_OK) {
    constexpr std::size_t kStep = std::size_t{1} << 30;  // zlib counts in 32 bits
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(from.data() + read));
    stream.avail_in = static_cast<uInt>(std::min(kStep, from.size() - read));
    stream.next_out =
        contents.empty() ? &nowhere : reinterpret_cast<Bytef*>(contents.data() + written);
    stream.avail_out = static_cast<uInt>(std::min(kStep, contents.size() - written));
    const uInt in = stream.avail_in, out = stream.avail_out;
    status = ::inflate(&stream, Z_NO_FLUSH);
    read += in - stream.avail_in;
    written += out - stream.avail_out;
    if (in == stream.avail_in && out == stream.avail_out && status == Z_OK) {
      break;
    }
  }
  inflateEnd(&stream);
  check(status == Z_STREAM_END && written == contents.size(), source_, ": ", name,
        " is damaged: it unpacks to other than ", contents.size(), " bytes");
  return contents;
}

// PyTorch can leave checksums out; it writes 0 then.
void ZipArchive::require_checksum(const Entry& entry, std::span<const std::byte> contents,
                                  const std::string& name) const {
  if (entry.checksum == 0) {
    return;
  }
  const uLong found = crc32_z(0, reinterpret_cast<const Bytef*>(contents.data()), contents.size());
  check(found == entry.checksum, source_, ": ", name, " is damaged: its checksum is ", found,
        " and should be ", entry.checksum);
}

}  // namespace bloomery
