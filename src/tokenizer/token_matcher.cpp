#include "tokenizer/token_matcher.h"

#include <algorithm>
#include <cstring>

namespace bloomery {
namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

}  // namespace

void TokenMatcher::add(std::string_view pattern, std::size_t token) {
  std::uint32_t node = 0;
  for (const char c : pattern) {
    const std::uint64_t key = static_cast<std::uint64_t>(node) << 8 | static_cast<unsigned char>(c);
    const auto [edge, added] = edges_.try_emplace(key, static_cast<std::uint32_t>(nodes_.size()));
    if (added) nodes_.push_back(kNothing);
    node = edge->second;
  }
  if (nodes_[node] == kNothing) nodes_[node] = static_cast<std::uint32_t>(token);
  const unsigned char first = byte_at(pattern, 0);
  if (std::find(first_bytes_.begin(), first_bytes_.end(), first) == first_bytes_.end()) {
    first_bytes_.push_back(first);
  }
  if (pattern.size() == 1) {
    singles_.set(first);
  } else {
    begins_.set(static_cast<std::size_t>(first) << 8 | byte_at(pattern, 1));
  }
}

std::size_t TokenMatcher::next_candidate(std::string_view text, std::size_t from) const {
  const auto may_begin = [&](std::size_t at) {
    const unsigned char first = byte_at(text, at);
    if (singles_[first]) return true;
    return at + 1 < text.size() &&
           begins_[static_cast<std::size_t>(first) << 8 | byte_at(text, at + 1)];
  };
  if (first_bytes_.size() == 1) {
    while (from < text.size()) {
      const void* found = std::memchr(text.data() + from, first_bytes_[0], text.size() - from);
      if (found == nullptr) return text.size();
      from = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
      if (may_begin(from)) return from;
      ++from;
    }
    return text.size();
  }
  while (from < text.size() && !may_begin(from)) ++from;
  return from;
}

TokenMatcher::Found TokenMatcher::find(std::string_view text, std::size_t from) const {
  for (std::size_t at = next_candidate(text, from); at < text.size();
       at = next_candidate(text, at + 1)) {
    Found best{text.size(), text.size(), 0};
    std::uint32_t node = 0;
    for (std::size_t end = at; end < text.size();) {
      const auto edge = edges_.find(static_cast<std::uint64_t>(node) << 8 | byte_at(text, end));
      if (edge == edges_.end()) break;
      node = edge->second;
      ++end;
      if (nodes_[node] == kNothing) continue;
      const bool better =
          choice_ == Choice::longest || best.begin != at || nodes_[node] < best.token;
      if (better) best = {at, end, nodes_[node]};
    }
    if (best.begin == at) return best;
  }
  return {text.size(), text.size(), 0};
}

}  // namespace bloomery
