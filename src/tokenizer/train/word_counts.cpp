#include "tokenizer/train/word_counts.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tokenizer/bpe/scanners.h"

namespace bloomery {
namespace {

std::uint64_t hash_of(const WordKey& key) {
  std::uint64_t mixed =
      (key.low * 0x9E3779B97F4A7C15) ^ std::rotl(key.high * 0xC2B2AE3D27D4EB4F, 29);
  mixed ^= mixed >> 32;
  return mixed * 0x165667B19E3779F9;
}

constexpr int kShardBits = std::countr_zero(WordCounts::kShards);

std::size_t shard_of(std::uint64_t hash) {
  return static_cast<std::size_t>(hash >> (64 - kShardBits));
}

// The bits below those that choose the shard.
std::size_t slot_of(std::uint64_t hash, std::size_t slots) {
  return static_cast<std::size_t>(hash >> (64 - kShardBits - 32) & (slots - 1));
}

}  // namespace

void WordTable::grow() {
  constexpr std::size_t kFirst = 64;
  std::vector<Slot> old(std::max(kFirst, 2 * slots_.size()));
  old.swap(slots_);
  used_ = 0;
  for (const Slot& slot : old) {
    if (slot.count > 0) add(slot.key, hash_of(slot.key), slot.count);
  }
}

void WordTable::add(const WordKey& key, std::uint64_t hash, std::uint64_t count) {
  if (used_ * 2 >= slots_.size()) grow();
  for (std::size_t at = slot_of(hash, slots_.size());; at = (at + 1) & (slots_.size() - 1)) {
    Slot& slot = slots_[at];
    if (slot.key == key) {
      slot.count += count;
      return;
    }
    if (slot.count == 0) {
      slot = {key, count};
      ++used_;
      return;
    }
  }
}

void WordTable::add_long(std::string_view word, std::uint64_t count) {
  if (const auto found = long_.find(word); found != long_.end()) {
    found->second += count;
  } else {
    long_.emplace(word, count);
  }
}

void WordTable::add_all(const WordTable& other) {
  for (const Slot& slot : other.slots_) {
    if (slot.count > 0) add(slot.key, hash_of(slot.key), slot.count);
  }
  for (const auto& [word, count] : other.long_) {
    add_long(word, count);
  }
}

void WordTable::for_each(const std::function<void(std::string_view, std::uint64_t)>& visit) const {
  for (const Slot& slot : slots_) {
    if (slot.count == 0) continue;
    char bytes[sizeof(WordKey)];
    std::memcpy(bytes, &slot.key, sizeof bytes);
    visit({bytes, static_cast<std::size_t>(slot.key.high >> 56)}, slot.count);
  }
  for (const auto& [word, count] : long_) {
    visit(word, count);
  }
}

void WordTable::remove_up_to(std::uint64_t count) {
  std::vector<Slot> old;
  old.swap(slots_);
  used_ = 0;
  for (const Slot& slot : old) {
    if (slot.count > count) add(slot.key, hash_of(slot.key), slot.count);
  }
  std::erase_if(long_, [&](const auto& entry) { return entry.second <= count; });
}

void WordCounts::add(std::string_view word, std::size_t readable, std::uint64_t count) {
  if (word.size() <= WordKey::kMaxLength) {
    const WordKey key = WordKey::of(word.data(), word.size(), readable, false);
    const std::uint64_t hash = hash_of(key);
    shards_[shard_of(hash)].add(key, hash, count);
  } else {
    // Any division does that does not depend on the thread.
    const WordKey head = WordKey::of(word.data(), WordKey::kMaxLength, readable, true);
    shards_[shard_of(hash_of(head))].add_long(word, count);
  }
}

void WordCounts::add_text(SplitPattern pattern, std::string_view text) {
  with_scanner(pattern, [&](auto scanner) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = scanner.next(text, at);
      add(text.substr(at, end - at), text.size() - at, 1);
      at = end;
    }
  });
}

std::size_t WordCounts::size() const {
  std::size_t total = 0;
  for (const WordTable& shard : shards_) {
    total += shard.size();
  }
  return total;
}

void WordCounts::for_each(const std::function<void(std::string_view, std::uint64_t)>& visit) const {
  for (const WordTable& shard : shards_) {
    shard.for_each(visit);
  }
}

std::uint64_t WordCounts::keep_most_frequent(std::size_t most) {
  if (size() <= most) return 0;
  std::vector<std::uint64_t> counts;
  counts.reserve(size());
  for_each([&](std::string_view, std::uint64_t count) { counts.push_back(count); });
  std::ranges::nth_element(counts, counts.begin() + static_cast<std::ptrdiff_t>(most),
                           std::greater<>());
  const std::uint64_t limit = counts[most];
  for (WordTable& shard : shards_) {
    shard.remove_up_to(limit);
  }
  return limit;
}

}  // namespace bloomery
