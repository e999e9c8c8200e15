// The end of a vector of ids, written through a pointer: room is made for many ids at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace bloomery {

class IdOutput {
 public:
  // A text of `bytes` is to come.
  IdOutput(std::vector<TokenId>& ids, std::size_t bytes)
      : ids_(ids), size_(ids.size()), step_(std::min<std::size_t>(bytes / 4 + 8, kMaxStep)) {}
  ~IdOutput() { ids_.resize(size_); }  // shrinks: does not throw
  IdOutput(const IdOutput&) = delete;
  IdOutput& operator=(const IdOutput&) = delete;

  // Where `count` ids can be written; those that advance() then counts are kept.
  TokenId* room(std::size_t count) {
    if (size_ + count > ids_.size()) [[unlikely]] {
      ids_.resize(size_ + count + step_);
    }
    return ids_.data() + size_;
  }
  void advance(std::size_t count) { size_ += count; }
  void push(TokenId id) {
    *room(1) = id;
    ++size_;
  }
  void append(std::span<const TokenId> more) {
    std::ranges::copy(more, room(more.size()));
    size_ += more.size();
  }
  std::size_t size() const { return size_; }
  void drop_after(std::size_t size) { size_ = size; }
  std::span<const TokenId> since(std::size_t start) const {
    return {ids_.data() + start, size_ - start};
  }

 private:
  static constexpr std::size_t kMaxStep = 4096;
  std::vector<TokenId>& ids_;
  std::size_t size_, step_;
};

}  // namespace bloomery
