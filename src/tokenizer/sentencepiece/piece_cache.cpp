#include "tokenizer/sentencepiece/piece_cache.h"

namespace bloomery {
namespace {

constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15;

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * kMultiplier;
  return hash ^ hash >> 32;
}

}  // namespace

std::uint64_t PieceCache::hash(std::string_view word) {
  std::uint64_t result = word.size();
  std::uint64_t part = 0;
  const char* at = word.data();
  std::size_t left = word.size();
  for (; left >= sizeof part; left -= sizeof part, at += sizeof part) {
    std::memcpy(&part, at, sizeof part);
    result = mix(result, part);
  }
  part = 0;
  std::memcpy(&part, at, left);
  return mix(result, part);
}

void PieceCache::add(std::string_view word, std::uint64_t hash, std::span<const TokenId> ids) {
  if (words_ == kMostWords) clear();
  std::size_t at = hash & kMask;
  while (entries_[at].size != 0) at = (at + 1) & kMask;
  entries_[at] = {static_cast<std::uint32_t>(hash >> 32), static_cast<std::uint32_t>(keys_.size()),
                  static_cast<std::uint32_t>(ids_.size()), static_cast<std::uint16_t>(word.size()),
                  static_cast<std::uint16_t>(ids.size())};
  keys_.insert(keys_.end(), word.begin(), word.end());
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  ++words_;
}

void PieceCache::clear() {
  entries_.assign(kSlots, Entry{});
  keys_.clear();
  ids_.clear();
  words_ = 0;
}

}  // namespace bloomery
