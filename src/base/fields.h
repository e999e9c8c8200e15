// Numbers, texts and arrays one after another in the bytes of a message between ranks of one kind
// of machine.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace bloomery {

class FieldWriter {
 public:
  template <class T>
  FieldWriter& number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  FieldWriter& text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    bytes_.append(value);
    return *this;
  }
  template <class T>
  FieldWriter& array(std::span<const T> values) {
    number(static_cast<std::uint64_t>(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : left_(bytes) {}

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number<std::uint32_t>())); }
  template <class T>
  std::vector<T> array() {
    const auto count = number<std::uint64_t>();
    check(count <= left_.size() / sizeof(T), "a message is cut short");
    std::vector<T> values(count);
    std::memcpy(values.data(), take(count * sizeof(T)).data(), count * sizeof(T));
    return values;
  }
  bool at_end() const { return left_.empty(); }

 private:
  std::string_view take(std::size_t count) {
    check(count <= left_.size(), "a message is cut short");
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }
  std::string_view left_;
};

}  // namespace bloomery
