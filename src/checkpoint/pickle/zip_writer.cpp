#include "checkpoint/pickle/zip_writer.h"

#include <zlib.h>

#include <cstring>

namespace bloomery {
namespace {

constexpr std::uint32_t kIn64Bits = 0xFFFFFFFF;
constexpr std::uint64_t kAlignment = 64;  // of contents, so that they can be mapped to memory
constexpr std::uint16_t kZip64Extra = 1, kPaddingExtra = 0x4246, kVersion = 45;
constexpr std::uint16_t kJanuary1980 = 0x21;

template <class... Numbers>
std::string bytes_of(Numbers... numbers) {
  std::string bytes;
  const auto add = [&](auto number) {
    char raw[sizeof number];
    std::memcpy(raw, &number, sizeof number);
    bytes.append(raw, sizeof number);
  };
  (add(numbers), ...);
  return bytes;
}

std::uint32_t narrow(std::uint64_t value) {
  return value >= kIn64Bits ? kIn64Bits : static_cast<std::uint32_t>(value);
}

std::string zip64_extra(std::initializer_list<std::uint64_t> values) {
  std::string body;
  for (const std::uint64_t value : values) {
    body += value >= kIn64Bits ? bytes_of(value) : "";
  }
  return body.empty() ? "" : bytes_of(kZip64Extra, static_cast<std::uint16_t>(body.size())) + body;
}

// Checksum, packed size, size, length of the name.
std::string sizes(std::uint32_t checksum, std::uint64_t size, const std::string& name) {
  return bytes_of(checksum, narrow(size), narrow(size), static_cast<std::uint16_t>(name.size()));
}

}  // namespace

void ZipWriter::put(const std::string& bytes) {
  file_.write(bytes);
  at_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> contents) {
  begin(name, contents.size());
  append(contents);
  end();
}

// The checksum is not known yet: end() puts it in its place.
void ZipWriter::begin(const std::string& name, std::uint64_t size) {
  entries_.push_back({name, size, at_});
  // A header of its own carries both sizes, or none.
  std::string extra = size >= kIn64Bits ? zip64_extra({size, size}) : std::string();
  constexpr std::uint64_t kHeader = 30, kExtraHead = 4;
  const std::uint64_t begin = at_ + kHeader + name.size() + extra.size() + kExtraHead;
  const std::uint64_t padding = (kAlignment - begin % kAlignment) % kAlignment;
  extra += bytes_of(kPaddingExtra, static_cast<std::uint16_t>(padding)) + std::string(padding, 'Z');
  put(bytes_of(std::uint32_t{0x04034b50}, kVersion, std::uint16_t{0}, std::uint16_t{0},
               std::uint16_t{0}, kJanuary1980) +
      sizes(0, size, name) + bytes_of(static_cast<std::uint16_t>(extra.size())) + name + extra);
}

void ZipWriter::append(std::span<const std::byte> contents) {
  if (contents.empty()) {
    return;  // of no bytes zlib gives the checksum of a beginning
  }
  std::uint32_t& checksum = entries_.back().checksum;
  checksum = static_cast<std::uint32_t>(
      crc32_z(checksum, reinterpret_cast<const Bytef*>(contents.data()), contents.size()));
  file_.write(contents.data(), contents.size());
  at_ += contents.size();
}

void ZipWriter::end() {
  constexpr std::uint64_t kChecksumAt = 14;  // in the entry's header
  const Entry& entry = entries_.back();
  file_.write_at(entry.offset + kChecksumAt, std::as_bytes(std::span(&entry.checksum, 1)));
}

void ZipWriter::finish() {
  const std::uint64_t begin = at_;
  for (const Entry& entry : entries_) {
    const std::string extra = zip64_extra({entry.size, entry.size, entry.offset});
    put(bytes_of(std::uint32_t{0x02014b50}, kVersion, kVersion, std::uint16_t{0}, std::uint16_t{0},
                 std::uint16_t{0}, kJanuary1980) +
        sizes(entry.checksum, entry.size, entry.name) +
        bytes_of(static_cast<std::uint16_t>(extra.size()), std::uint16_t{0}, std::uint16_t{0},
                 std::uint16_t{0}, std::uint32_t{0}, narrow(entry.offset)) +
        entry.name + extra);
  }
  const std::uint64_t count = entries_.size(), bytes = at_ - begin, end = at_;
  const bool large = begin >= kIn64Bits || count >= 0xFFFF;
  if (large) {
    put(bytes_of(std::uint32_t{0x06064b50}, std::uint64_t{44}, kVersion, kVersion, std::uint32_t{0},
                 std::uint32_t{0}, count, count, bytes, begin));
    put(bytes_of(std::uint32_t{0x07064b50}, std::uint32_t{0}, end, std::uint32_t{1}));
  }
  const auto few = static_cast<std::uint16_t>(large ? 0xFFFF : count);
  put(bytes_of(std::uint32_t{0x06054b50}, std::uint16_t{0}, std::uint16_t{0}, few, few,
               narrow(bytes), large ? kIn64Bits : narrow(begin), std::uint16_t{0}));
}

}  // namespace bloomery
