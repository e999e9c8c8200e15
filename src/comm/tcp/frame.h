// Messages of the control plane after the hello: a kind, a length, and fields one after another.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "base/fields.h"

namespace bloomery {

struct Frame {
  enum class Kind : std::uint32_t {
    welcome,   // all have come: the addresses of all
    group,     // name and members
    letter,    // to be gathered: group, topic, number, who gets them all, seconds, text
    letters,   // all of them: group, topic, number, texts
    failure,   // rank, whether it is a mistake, whether a rank is silent, text
    bye,       // the rank leaves in peace; of the first: how many seconds it waits for the others
    status,    // where a rank stands (comm/watch): whether all is told after a failure, bytes
    statuses,  // of all ranks: whether it answered, age and bytes of each; none: the hub lives
  };
  static constexpr std::int32_t kToAll = -1;  // instead of a rank
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

}  // namespace bloomery
