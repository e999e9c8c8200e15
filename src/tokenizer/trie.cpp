#include "tokenizer/trie.h"

#include <algorithm>
#include <bit>

namespace bloomery {
namespace {

constexpr std::size_t kBlock = 256;
constexpr std::size_t kWordBits = 64;
// Blocks that a new family of children may still fill, which bounds the search; the gaps of older
// ones are for single children.
constexpr std::size_t kOpenBlocks = 4;

// A key with its first bytes as a number, by which most are told apart.
struct Ordered {
  std::uint64_t beginning;
  std::uint32_t place;
};

std::uint64_t beginning_of(std::string_view key) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value = value << 8 | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0U);
  }
  return value;
}

}  // namespace

class ByteTrie::Builder {
 public:
  Builder(ByteTrie& trie, std::vector<Entry> entries) : trie_(trie), entries_(std::move(entries)) {}

  void build() {
    add_block();
    trie_.units_[kRoot].parent = kNowhere;
    use(kRoot);
    pending_.push_back({kRoot, 0, entries_.size(), 0});
    while (!pending_.empty()) {
      const Range range = pending_.back();
      pending_.pop_back();
      expand(range);
    }
  }

 private:
  // The entries [begin, end) share their first `depth` bytes, which lead to `state`.
  struct Range {
    State state;
    std::size_t begin, end, depth;
  };
  struct Child {
    unsigned char byte;
    std::size_t begin, end;
  };

  void add_block() {
    trie_.units_.resize(trie_.units_.size() + kBlock);
    trie_.values_.resize(trie_.units_.size(), kNoValue);
    free_.resize(trie_.units_.size() / kWordBits, ~std::uint64_t{0});
  }
  void use(std::size_t unit) { free_[unit / kWordBits] &= ~(std::uint64_t{1} << unit % kWordBits); }
  bool is_free(std::size_t unit) const {
    return (free_[unit / kWordBits] >> unit % kWordBits & 1) != 0;
  }

  void expand(Range range) {
    if (range.begin < range.end && entries_[range.begin].key.size() == range.depth) {
      trie_.values_[range.state] = entries_[range.begin++].value;
    }
    children_.clear();
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const auto byte = static_cast<unsigned char>(entries_[i].key[range.depth]);
      if (children_.empty() || children_.back().byte != byte) {
        children_.push_back({byte, i, i});
      }
      children_.back().end = i + 1;
    }
    if (children_.empty()) return;
    const std::uint32_t base = find_base();
    trie_.units_[range.state].base = base;
    for (const Child& child : children_) {
      const State target = base ^ child.byte;
      use(target);
      trie_.units_[target].parent = range.state;
      pending_.push_back({target, child.begin, child.end, range.depth + 1});
    }
  }

  bool fits(std::uint32_t base) const {
    return std::all_of(children_.begin(), children_.end(),
                       [&](const Child& child) { return is_free(base ^ child.byte); });
  }

  // A place where all children are free: the first child tries each free unit.
  std::uint32_t find_base() {
    if (children_.size() == 1) {
      while (first_free_ < free_.size() && free_[first_free_] == 0) ++first_free_;
      if (first_free_ == free_.size()) add_block();
      const auto bit = static_cast<std::size_t>(std::countr_zero(free_[first_free_]));
      return static_cast<std::uint32_t>(first_free_ * kWordBits + bit) ^ children_[0].byte;
    }
    const std::size_t blocks = trie_.units_.size() / kBlock;
    const std::size_t first = blocks > kOpenBlocks ? blocks - kOpenBlocks : 0;
    for (std::size_t word = first * kBlock / kWordBits; word < free_.size(); ++word) {
      for (std::uint64_t left = free_[word]; left != 0; left &= left - 1) {
        const std::size_t unit =
            word * kWordBits + static_cast<std::size_t>(std::countr_zero(left));
        const auto base = static_cast<std::uint32_t>(unit) ^ children_.front().byte;
        if (fits(base)) return base;
      }
    }
    add_block();
    return static_cast<std::uint32_t>(blocks * kBlock);
  }

  ByteTrie& trie_;
  std::vector<Entry> entries_;
  std::vector<std::uint64_t> free_;  // one bit per unit
  std::size_t first_free_ = 0;       // words before it have none
  std::vector<Range> pending_;
  std::vector<Child> children_;
};

ByteTrie::ByteTrie(std::span<const Entry> entries) {
  std::vector<Ordered> order;
  order.reserve(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].key.empty()) continue;
    order.push_back({beginning_of(entries[i].key), static_cast<std::uint32_t>(i)});
  }
  std::ranges::sort(order, [&](const Ordered& a, const Ordered& b) {
    if (a.beginning != b.beginning) return a.beginning < b.beginning;
    const int compared = entries[a.place].key.compare(entries[b.place].key);
    return compared != 0 ? compared < 0 : a.place < b.place;
  });
  std::vector<Entry> sorted;
  sorted.reserve(order.size());
  for (const Ordered& next : order) {
    const Entry& entry = entries[next.place];
    if (!sorted.empty() && sorted.back().key == entry.key) sorted.pop_back();
    sorted.push_back(entry);
  }
  Builder(*this, std::move(sorted)).build();
}

ByteTrie::State ByteTrie::walk(State from, std::string_view text) const {
  for (std::size_t i = 0; i < text.size() && from != kNowhere; ++i) {
    from = next(from, text[i]);
  }
  return from;
}

ByteTrie::Match ByteTrie::longest(std::string_view text, std::size_t at, State from) const {
  Match match{0, kNoValue};
  State state = from;
  for (std::size_t i = at; i < text.size(); ++i) {
    state = next(state, text[i]);
    if (state == kNowhere) break;
    if (value(state) != kNoValue) match = {i + 1 - at, value(state)};
  }
  return match;
}

std::int32_t ByteTrie::find(std::string_view key) const {
  const State state = walk(kRoot, key);
  return state == kNowhere ? kNoValue : value(state);
}

}  // namespace bloomery
