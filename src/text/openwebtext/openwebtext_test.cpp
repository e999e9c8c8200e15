#include <gtest/gtest.h>

#include "text/openwebtext/find_duplicates.h"
#include "text/openwebtext/url_groups.h"

namespace bloomery {
namespace {

// Seeds and fingerprint of the original's defaults.
TEST(FindDuplicates, FingerprintOfBytes) {
  const std::vector<std::uint32_t> seeds = fingerprint_seeds({});
  ASSERT_EQ(seeds.size(), 100);
  EXPECT_EQ(std::vector(seeds.begin(), seeds.begin() + 6),
            (std::vector<std::uint32_t>{486191, 451283, 165158, 908341, 978124, 220532}));
  EXPECT_EQ(seeds.back(), 68580);
  const auto print = byte_fingerprint("The quick brown fox jumps over the lazy dog", seeds);
  EXPECT_EQ(
      std::vector(print.begin(), print.begin() + 5),
      (std::vector<std::uint32_t>{2251006832, 2183520595, 2172506335, 2299219485, 2445632571}));
  EXPECT_EQ(byte_fingerprint("abcd", seeds)[7], 0xFFFFFFFF);
}

TEST(FindDuplicates, SimilarityOfCharacters) {
  const auto a = shingles("abcdefgh"), b = shingles("abcdefgx");  // the last window is left out
  EXPECT_EQ(a.size(), 3);
  EXPECT_DOUBLE_EQ(similarity(a, b, Jaccard::by_union), 1);
  const auto c = shingles("xbcdefgh12");
  EXPECT_DOUBLE_EQ(similarity(a, c, Jaccard::by_union), 2.0 / 6);
  EXPECT_DOUBLE_EQ(similarity(a, c, Jaccard::by_smaller), 2.0 / 3);
  EXPECT_DOUBLE_EQ(similarity(a, c, Jaccard::by_larger), 2.0 / 5);
  EXPECT_EQ(similarity({}, a, Jaccard::by_union), 0);
  EXPECT_EQ(shingles("日本語のテキスト").size(), 3);
}

TEST(FindDuplicates, MainIsTheFirstOfABucket) {
  const std::string text =
      "a text that is long enough to be compared with another one, more or less";
  FindDuplicatesOptions options;
  const std::vector<std::uint32_t> seeds = fingerprint_seeds(options);
  DuplicateFinder finder(options);
  const std::string other = "something quite different, which shares not a single window with it";
  for (const auto& [id, contents] : {std::pair{"b", text}, {"x", other}, {"a", text}}) {
    finder.add(id, contents, byte_fingerprint(contents, seeds));
  }
  int groups = 0;
  finder.for_each([&](const SimilarDocuments& group) {
    ++groups;
    EXPECT_EQ(finder.id(group.main), "b");
    ASSERT_EQ(group.others.size(), 1);
    EXPECT_EQ(finder.id(group.others[0].first), "a");
    EXPECT_EQ(group.others[0].second, 1);
  });
  EXPECT_EQ(groups, 10);  // once in each band, as in the original
}

TEST(UrlGroups, GrowTogether) {
  UrlGroups groups;
  groups.add({"a", "b"});
  groups.add({"c", "d"});
  groups.add({"e"});
  groups.add({"f", "d", "b"});
  const auto found = groups.groups();
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].index, 1);
  EXPECT_EQ(found[0].ids, (std::vector<std::string>{"c", "d", "f", "a", "b"}));
}

}  // namespace
}  // namespace bloomery
