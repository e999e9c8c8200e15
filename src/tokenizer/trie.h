// Which of many strings begin at a place of a text: a double-array trie over bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace bloomery {

class ByteTrie {
 public:
  using State = std::uint32_t;
  static constexpr State kRoot = 0;
  static constexpr State kNowhere = UINT32_MAX;
  static constexpr std::int32_t kNoValue = -1;

  struct Entry {
    std::string_view key;
    std::int32_t value;  // not negative
  };
  struct Match {
    std::size_t length;  // 0: none
    std::int32_t value;
  };

  ByteTrie() : ByteTrie(std::span<const Entry>()) {}
  // Of equal keys the last one given counts; empty keys are left out.
  explicit ByteTrie(std::span<const Entry> entries);

  State next(State state, char byte) const {
    const State target = units_[state].base ^ static_cast<unsigned char>(byte);
    return units_[target].parent == state ? target : kNowhere;
  }
  std::int32_t value(State state) const { return values_[state]; }

  // The state after the whole of `text`, kNowhere if no key begins with it.
  State walk(State from, std::string_view text) const;
  // The longest key that begins text[at...], walking from `from`.
  Match longest(std::string_view text, std::size_t at, State from = kRoot) const;
  // The value of exactly this key.
  std::int32_t find(std::string_view key) const;

 private:
  // A child of s by byte b stands at base(s) ^ b and names s as its parent. The units come in
  // blocks of 256, so that the exclusive-or never leaves the array.
  struct Unit {
    std::uint32_t base = 0;
    State parent = kNowhere;
  };
  class Builder;

  std::vector<Unit> units_;
  std::vector<std::int32_t> values_;
};

}  // namespace bloomery
