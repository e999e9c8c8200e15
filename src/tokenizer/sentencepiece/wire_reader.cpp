#include "tokenizer/sentencepiece/wire_reader.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>

#include "base/error.h"

namespace bloomery {

using google::protobuf::io::CodedInputStream;

namespace {
constexpr std::size_t kLongestVarint = 10;
}

std::uint64_t WireReader::varint() {
  const std::size_t most = std::min(left_.size(), kLongestVarint);
  CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(left_.data()),
                          static_cast<int>(most));
  std::uint64_t value = 0;
  check(stream.ReadVarint64(&value), name_,
        ": the file is damaged or cut off: no number where one ", "must stand, ", left_.size(),
        " bytes before the end of its message");
  take(static_cast<std::size_t>(stream.CurrentPosition()));
  return value;
}

std::string_view WireReader::take(std::size_t count) {
  check(count <= left_.size(), name_, ": the file is damaged or cut off: a field of ", count,
        " bytes where ", left_.size(), " are left");
  const std::string_view taken = left_.substr(0, count);
  left_.remove_prefix(count);
  return taken;
}

bool WireReader::next() {
  if (left_.empty()) return false;
  const std::uint64_t tag = varint();
  const std::uint64_t type = tag & 7, field = tag >> 3;
  check((type <= 2 || type == 5) && field > 0 && field < 1U << 29, name_,
        ": the file is damaged: tag ", tag, " is no field");
  field_ = static_cast<int>(field);
  type_ = static_cast<WireType>(type);
  return true;
}

std::uint32_t WireReader::fixed32() {
  std::uint32_t value = 0;
  CodedInputStream::ReadLittleEndian32FromArray(
      reinterpret_cast<const std::uint8_t*>(take(sizeof value).data()), &value);
  return value;
}

std::string_view WireReader::bytes() { return take(varint()); }

void WireReader::skip() {
  switch (type_) {
    case WireType::varint:
      varint();
      return;
    case WireType::fixed64:
      take(8);
      return;
    case WireType::bytes:
      bytes();
      return;
    case WireType::fixed32:
      take(4);
      return;
  }
}

}  // namespace bloomery
