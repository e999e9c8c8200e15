// Thrift's compact protocol, as far as Parquet's footers and page headers need it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace bloomery {

// The bytes ended inside a value.
class ThriftCutOff : public Error {
 public:
  using Error::Error;
};

class ThriftReader {
 public:
  enum class Type { stop, yes, no, i8, i16, i32, i64, real, text, list, set, map, object };
  struct Field {
    int id = 0;
    Type type = Type::stop;
  };

  explicit ThriftReader(std::string_view bytes) : bytes_(bytes) {}

  std::size_t position() const { return at_; }

  // Calls with each field of the struct that begins here. `visit` reads the value and returns true,
  // or returns false for one that it does not know.
  template <class Visit>
  void read_struct(const Visit& visit) {
    enter();
    for (Field field; next_field(field);) {
      if (!visit(field)) skip(field.type);
    }
    --depth_;
  }

  // The value of a field, which must be of that type. Integers of all sizes are one type.
  std::int64_t integer(const Field& field);
  bool boolean(const Field& field) const;
  std::string_view text(const Field& field);
  void require_struct(const Field& field) const;

  // Calls for each element of a list of structs or of integers, which `visit` reads.
  template <class Visit>
  void read_list(const Field& field, Type element, const Visit& visit) {
    const std::uint64_t count = begin_list(field, element);
    for (std::uint64_t i = 0; i < count; ++i) visit();
  }

 private:
  void enter();
  bool next_field(Field& field);
  std::uint64_t begin_list(const Field& field, Type element);
  void skip(Type type);
  void skip_list();
  void skip_map();
  void skip_bytes(std::uint64_t count);
  std::uint8_t byte();
  std::uint64_t varint();
  std::int64_t zigzag();

  std::string_view bytes_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace bloomery
