// Messages of the control plane: a kind, a length, and fields one after another.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace bloomery {

struct Frame {
  enum class Kind : std::uint32_t {
    hello,     // a rank comes: protocol, rank, size
    welcome,   // all have come: the addresses of all
    group,     // name and members
    letter,    // to be gathered: group, topic, number, seconds, text
    letters,   // all of them: group, topic, number, texts
    failure,   // rank, whether it is a mistake, whether a rank is silent, text
    bye,       // the rank leaves in peace
    status,    // where a rank stands (comm/watch): whether all is told after a failure, bytes
    statuses,  // of all ranks: whether it answered, age and bytes of each; none: the hub lives
  };
  static constexpr std::uint32_t kProtocol = 0xB1000002;
  static constexpr std::size_t kHeaderBytes = 8;
  static constexpr std::uint32_t kMaxBytes = 1u << 31;

  Kind kind = Kind::bye;
  std::string body;

  std::string bytes() const {
    std::string all(kHeaderBytes, '\0');
    const auto length = static_cast<std::uint32_t>(body.size());
    std::memcpy(all.data(), &kind, 4);
    std::memcpy(all.data() + 4, &length, 4);
    return all + body;
  }
  // Takes the first frame off `buffer`; none while it is incomplete.
  static std::optional<Frame> take(std::string& buffer) {
    if (buffer.size() < kHeaderBytes) {
      return {};
    }
    Frame frame;
    std::uint32_t length = 0;
    std::memcpy(&frame.kind, buffer.data(), 4);
    std::memcpy(&length, buffer.data() + 4, 4);
    check(length <= kMaxBytes, "a message of ", length, " bytes is no message of a rank");
    if (buffer.size() < kHeaderBytes + length) {
      return {};
    }
    frame.body = buffer.substr(kHeaderBytes, length);
    buffer.erase(0, kHeaderBytes + length);
    return frame;
  }
};

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

 private:
  std::string_view take(std::size_t count) {
    check(count <= left_.size(), "a message between ranks is cut short");
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }
  std::string_view left_;
};

}  // namespace bloomery
