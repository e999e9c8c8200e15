#include "samples/instruct/packing.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>

namespace bloomery {

std::vector<std::vector<std::int64_t>> pack(std::span<const std::int64_t> lengths,
                                            std::int64_t capacity) {
  std::vector<std::int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  const auto length = [&](std::int64_t sample) {
    return lengths[static_cast<std::size_t>(sample)];
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return length(a) > length(b); });
  std::vector<std::vector<std::int64_t>> packs;
  std::map<std::int64_t, std::deque<std::size_t>> by_space;  // of packs, in the order they got it
  for (const std::int64_t sample : order) {
    auto fitting = by_space.lower_bound(length(sample));
    std::size_t pack = packs.size();
    std::int64_t space = capacity;
    if (fitting == by_space.end()) {
      packs.emplace_back();
    } else {
      space = fitting->first;
      pack = fitting->second.front();
      fitting->second.pop_front();
      if (fitting->second.empty()) by_space.erase(fitting);
    }
    packs[pack].push_back(sample);
    by_space[space - length(sample)].push_back(pack);
  }
  return packs;
}

}  // namespace bloomery
