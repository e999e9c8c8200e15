// Reads the fields of a protocol buffer message one by one, each size checked against the bytes
// that are left.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bloomery {

enum class WireType { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

class WireReader {
 public:
  // `name` is for messages; both must outlive the reader.
  WireReader(std::string_view message, std::string_view name) : left_(message), name_(name) {}

  // Goes to the next field; false at the end. Each field must then be read or skipped.
  bool next();

  int field() const { return field_; }
  bool is(int field, WireType type) const { return field_ == field && type_ == type; }

  // The value of the field, of the type that is() has confirmed.
  std::uint64_t varint();
  std::uint32_t fixed32();
  std::string_view bytes();
  WireReader message() { return WireReader(bytes(), name_); }
  void skip();

 private:
  std::string_view take(std::size_t count);

  std::string_view left_;
  std::string_view name_;
  int field_ = 0;
  WireType type_ = WireType::varint;
};

}  // namespace bloomery
