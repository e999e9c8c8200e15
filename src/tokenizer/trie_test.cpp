#include "tokenizer/trie.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace bloomery {
namespace {

std::string random_key(std::mt19937& random, std::size_t longest) {
  std::string key(random() % (longest + 1), '\0');
  for (char& c : key) c = static_cast<char>(random() % 7 * 41);
  return key;
}

TEST(ByteTrie, FindsWhatAMapFinds) {
  std::mt19937 random(3);
  for (int round = 0; round < 30; ++round) {
    std::map<std::string, std::int32_t> map;
    std::vector<std::pair<std::string, std::int32_t>> keys;
    for (std::int32_t i = 0; i < 1 + round * 60; ++i) {
      keys.emplace_back(random_key(random, 6), i);
      map[keys.back().first] = i;
    }
    map.erase("");
    std::vector<ByteTrie::Entry> entries;
    for (const auto& [key, value] : keys) entries.push_back({key, value});
    const ByteTrie trie(entries);
    for (int i = 0; i < 2000; ++i) {
      const std::string key = random_key(random, 6);
      const auto found = map.find(key);
      ASSERT_EQ(trie.find(key), found == map.end() ? ByteTrie::kNoValue : found->second);
      ByteTrie::Match longest{0, ByteTrie::kNoValue};
      for (std::size_t n = 1; n <= key.size(); ++n) {
        if (const auto prefix = map.find(key.substr(0, n)); prefix != map.end()) {
          longest = {n, prefix->second};
        }
      }
      const ByteTrie::Match match = trie.longest(key, 0);
      ASSERT_EQ(match.length, longest.length);
      ASSERT_EQ(match.value, longest.value);
    }
  }
}

TEST(ByteTrie, AnEmptyOneFindsNothing) {
  const ByteTrie trie;
  EXPECT_EQ(trie.find(std::string(1, '\0')), ByteTrie::kNoValue);
  EXPECT_EQ(trie.longest("abc", 0).length, 0U);
}

}  // namespace
}  // namespace bloomery
