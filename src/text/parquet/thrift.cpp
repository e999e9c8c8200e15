#include "text/parquet/thrift.h"

#include "text/parquet/bits.h"

namespace bloomery {
namespace {

constexpr int kMostDepth = 32;  // Parquet's own structs nest about eight deep

ThriftReader::Type type_of(int code) {
  check(code <= static_cast<int>(ThriftReader::Type::object), "a Thrift type ", code,
        ", which there is not");
  return static_cast<ThriftReader::Type>(code);
}

bool is_integer(ThriftReader::Type type) {
  return type >= ThriftReader::Type::i8 && type <= ThriftReader::Type::i64;
}

}  // namespace

void ThriftReader::enter() {
  check(++depth_ <= kMostDepth, "its structs nest more than ", kMostDepth, " deep");
}

std::uint8_t ThriftReader::byte() {
  if (at_ == bytes_.size()) throw ThriftCutOff("it is cut off");
  return static_cast<std::uint8_t>(bytes_[at_++]);
}

std::uint64_t ThriftReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const std::uint8_t part = byte();
    value |= std::uint64_t{part & 0x7Fu} << shift;
    if (part < 0x80) return value;
  }
  throw Error("an integer of more than 64 bits");
}

std::int64_t ThriftReader::zigzag() { return undo_zigzag(varint()); }

// Field numbers are differences to the one before, which `field` holds.
bool ThriftReader::next_field(Field& field) {
  const std::uint8_t head = byte();
  field.type = type_of(head & 0x0F);
  if (field.type == Type::stop) return false;
  if (head >> 4 != 0) {
    field.id += head >> 4;
  } else {
    field.id = static_cast<int>(zigzag() & 0xFFFF);
  }
  return true;
}

std::int64_t ThriftReader::integer(const Field& field) {
  check(is_integer(field.type), "field ", field.id, " is no integer");
  return field.type == Type::i8 ? static_cast<std::int8_t>(byte()) : zigzag();
}

bool ThriftReader::boolean(const Field& field) const {
  check(field.type == Type::yes || field.type == Type::no, "field ", field.id, " is no boolean");
  return field.type == Type::yes;
}

std::string_view ThriftReader::text(const Field& field) {
  check(field.type == Type::text, "field ", field.id, " is no text");
  const std::uint64_t size = varint();
  const std::size_t begin = at_;
  skip_bytes(size);
  return bytes_.substr(begin, size);
}

void ThriftReader::require_struct(const Field& field) const {
  check(field.type == Type::object, "field ", field.id, " is no struct");
}

std::uint64_t ThriftReader::begin_list(const Field& field, Type element) {
  check(field.type == Type::list, "field ", field.id, " is no list");
  const std::uint8_t head = byte();
  const std::uint64_t count = head >> 4 == 15 ? varint() : head >> 4;
  check(count == 0 || type_of(head & 0x0F) == element, "field ", field.id,
        " is a list of another type");
  if (count > bytes_.size() - at_) throw ThriftCutOff("it is cut off");
  return count;
}

void ThriftReader::skip_bytes(std::uint64_t count) {
  if (count > bytes_.size() - at_) throw ThriftCutOff("it is cut off");
  at_ += count;
}

void ThriftReader::skip_list() {
  const std::uint8_t head = byte();
  const std::uint64_t count = head >> 4 == 15 ? varint() : head >> 4;
  const Type element = type_of(head & 0x0F);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (element == Type::yes || element == Type::no) {
      byte();  // in a list a boolean has a byte
    } else {
      skip(element);
    }
  }
}

void ThriftReader::skip_map() {
  const std::uint64_t count = varint();
  if (count == 0) return;
  const std::uint8_t types = byte();
  for (std::uint64_t i = 0; i < count; ++i) {
    for (const int code : {types >> 4, types & 0x0F}) {
      check(code > 2, "a map of booleans");
      skip(type_of(code));
    }
  }
}

void ThriftReader::skip(Type type) {
  enter();
  switch (type) {
    case Type::stop:
      throw Error("an element without a type");
    case Type::yes:
    case Type::no:
      break;
    case Type::i8:
      byte();
      break;
    case Type::i16:
    case Type::i32:
    case Type::i64:
      varint();
      break;
    case Type::real:
      skip_bytes(8);
      break;
    case Type::text:
      skip_bytes(varint());
      break;
    case Type::list:
    case Type::set:
      skip_list();
      break;
    case Type::map:
      skip_map();
      break;
    case Type::object:
      read_struct([](const Field&) { return false; });
      break;
  }
  --depth_;
}

}  // namespace bloomery
