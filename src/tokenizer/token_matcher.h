// Finds the tokens of a set in a text, from left to right: special tokens, and those that a
// vocabulary was extended by.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace bloomery {

class TokenMatcher {
 public:
  // Which of several tokens that begin at one place is found.
  enum class Choice { longest, first_added };
  explicit TokenMatcher(Choice choice = Choice::longest) : choice_(choice) {}

  // Of tokens with one pattern the first that was added is found.
  void add(std::string_view pattern, std::size_t token);
  bool empty() const { return nodes_.size() == 1; }

  struct Found {
    std::size_t begin, end, token;
  };
  // The first match at or after `from`; begin == text.size() when there is none.
  Found find(std::string_view text, std::size_t from) const;

 private:
  static constexpr std::uint32_t kNothing = ~std::uint32_t{0};
  std::size_t next_candidate(std::string_view text, std::size_t from) const;

  Choice choice_;
  std::vector<std::uint32_t> nodes_{kNothing};  // the token that ends in each node of a trie
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;  // node and byte to node
  // Which two bytes begin a pattern, and which single bytes are patterns: few places of a text
  // pass this test.
  std::bitset<256 * 256> begins_ = {};
  std::bitset<256> singles_ = {};
  std::vector<unsigned char> first_bytes_;
};

}  // namespace bloomery
