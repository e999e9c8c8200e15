// Snappy's and LZ4's blocks: literals, and copies of what came before.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "text/parquet/bits.h"
#include "text/parquet/codec.h"

namespace bloomery {
namespace {

// What is unpacked so far.
class Output {
 public:
  explicit Output(std::span<char> to) : to_(to) {}

  // Takes a literal from the front of `from`.
  void append(std::string_view& from, std::uint64_t length) {
    const std::size_t room = to_.size() - used_, readable = from.size();
    const std::string_view literal = take_bytes(from, length);
    check(length <= room, "it unpacks to more than its ", to_.size(), " bytes");
    char* out = to_.data() + used_;
    if (length <= kShort && room >= kShort && readable >= kShort) {
      std::memcpy(out, literal.data(), kShort);  // more than asked for, which is faster
    } else {
      std::memcpy(out, literal.data(), length);
    }
    used_ += length;
  }
  // `length` bytes from `distance` before the end; those that the copy makes may be among them.
  void copy(std::uint64_t distance, std::uint64_t length) {
    const std::size_t room = to_.size() - used_;
    if (distance == 0 || distance > used_ || length > room) [[unlikely]] {
      throw Error("its compressed data is damaged");
    }
    char* out = to_.data() + used_;
    const char* in = out - distance;
    if (distance >= kStep && length + kStep <= room) {
      for (std::uint64_t i = 0; i < length; i += kStep) std::memcpy(out + i, in + i, kStep);
    } else {
      for (std::uint64_t i = 0; i < length; ++i) out[i] = in[i];
    }
    used_ += length;
  }
  void finish() const {
    check(used_ == to_.size(), "it unpacks to ", used_, " bytes and should have ", to_.size());
  }

 private:
  static constexpr std::size_t kShort = 16, kStep = 16;
  std::span<char> to_;
  std::size_t used_ = 0;
};

// A little-endian integer of 1 to 4 bytes.
std::uint64_t take_integer(std::string_view& from, std::size_t bytes) {
  return bits_at(take_bytes(from, bytes), 0, static_cast<int>(bytes) * 8);
}

// What LZ4 adds to a length of 15: bytes, all but the last of which are 255.
std::uint64_t take_more_length(std::string_view& from) {
  std::uint64_t length = 0, byte = 255;
  while (byte == 255) length += byte = take_integer(from, 1);
  return length;
}

}  // namespace

void unpack_snappy(std::string_view from, std::span<char> to) {
  const std::uint64_t size = take_varint(from);
  check(size == to.size(), "it unpacks to ", size, " bytes and should have ", to.size());
  Output out(to);
  while (!from.empty()) {
    const std::uint64_t tag = take_integer(from, 1), high = tag >> 2;
    const std::uint64_t kind = tag & 3;
    if (kind == 0) {
      constexpr std::uint64_t kLargestInTag = 59;  // beyond it, how many bytes the length has
      const std::uint64_t length =
          high <= kLargestInTag ? high : take_integer(from, high - kLargestInTag);
      out.append(from, length + 1);
      continue;
    }
    constexpr std::uint8_t kBytes[] = {0, 1, 2, 4};  // of the distance
    const std::uint64_t distance = take_integer(from, kBytes[kind]);
    if (kind == 1) {
      out.copy((tag >> 5) << 8 | distance, (high & 7) + 4);
    } else {
      out.copy(distance, high + 1);
    }
  }
  out.finish();
}

void unpack_lz4(std::string_view from, std::span<char> to) {
  constexpr std::uint64_t kLongLength = 15, kShortestCopy = 4;
  Output out(to);
  while (!from.empty()) {
    const std::uint64_t token = take_integer(from, 1);
    std::uint64_t literals = token >> 4, copied = token & 15;
    if (literals == kLongLength) literals += take_more_length(from);
    out.append(from, literals);
    if (from.empty()) break;  // the last sequence has literals alone
    const std::uint64_t distance = take_integer(from, 2);
    if (copied == kLongLength) copied += take_more_length(from);
    out.copy(distance, copied + kShortestCopy);
  }
  out.finish();
}

}  // namespace bloomery
