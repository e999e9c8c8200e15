#include "text/dedup/minhash.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "harness/shared_data.h"
#include "text/dedup/sha1.h"

namespace bloomery {
namespace {

// The first values, and all of them as one number, as the golden file has them.
std::vector<std::uint64_t> shown(std::span<const std::uint64_t> signature) {
  if (signature.empty()) return {};
  std::uint64_t total = 0;
  for (const std::uint64_t value : signature) total = total * 31 + value;
  return {signature[0], signature[1], signature[2], total};
}

TEST(MinHash, SignaturesAreDatatroves) {
  TextSimplifier simplifier;
  MinHash xxh64({}), sha1({.hash = ShingleHash::sha1});
  for (const auto& entry : nlohmann::json::parse(golden_file("minhash.json"))) {
    const auto text = entry.at("text").get<std::string>();
    EXPECT_EQ(simplifier.simplify(text), entry.at("simple").get<std::string>()) << text;
    EXPECT_EQ(shown(xxh64.signature(text)), entry.at("xxh64").get<std::vector<std::uint64_t>>());
    EXPECT_EQ(shown(sha1.signature(text)), entry.at("sha1").get<std::vector<std::uint64_t>>());
  }
}

TEST(MinHash, KeysAreEqualWhereAllValuesOfABucketAre) {
  MinHash minhash({.num_buckets = 3, .hashes_per_bucket = 2});
  std::vector<std::uint64_t> a = {1, 2, 3, 4, 1, 2}, keys, others;
  minhash.keys(a, keys);
  ASSERT_EQ(keys.size(), 3);
  EXPECT_NE(keys[0], keys[2]);  // the same values in different buckets
  a[3] = 5;
  minhash.keys(a, others);
  EXPECT_EQ(others[0], keys[0]);
  EXPECT_NE(others[1], keys[1]);
  EXPECT_EQ(others[2], keys[2]);
}

// The kernel against its definition in wider numbers, the largest ones included.
TEST(MinHash, LeastHashes) {
  constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
  std::mt19937_64 random(3);
  std::vector<std::uint64_t> hashes = {0, UINT64_MAX, kPrime, kPrime - 1, kPrime + 1};
  for (int i = 0; i < 50; ++i) hashes.push_back(random());
  std::vector<std::uint64_t> factors(2 * kMinHashLanes), terms(factors.size());
  for (std::uint64_t& factor : factors) factor = random() % kPrime;
  factors[0] = 1;  // and term 0: hashes as they are
  for (std::size_t i = 1; i < terms.size(); ++i) terms[i] = random() % kPrime;
  for (std::size_t count = 1; count <= hashes.size(); ++count) {
    std::vector<std::uint64_t> minima(factors.size(), UINT64_MAX);
    update({std::span(hashes).last(count), factors, terms, minima});
    for (std::size_t k = 0; k < factors.size(); ++k) {
      std::uint64_t expected = UINT64_MAX;
      for (const std::uint64_t hash : std::span(hashes).last(count)) {
        expected = std::min(expected, (hash * factors[k] + terms[k]) % kPrime);
      }
      ASSERT_EQ(minima[k], expected) << count << " hashes, function " << k;
    }
  }
}

TEST(Sha1, OfEveryLengthOfBlocks) {
  EXPECT_EQ(sha1_start(""), 0x0D4B6B5EEEA339DAu);     // da39a3ee5e6b4b0d...
  EXPECT_EQ(sha1_start("abc"), 0x6A810647363E99A9u);  // a9993e364706816a...
  EXPECT_EQ(sha1_start("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            0x6ED23B1C443E9884u);
  EXPECT_EQ(sha1_start(std::string(64, 'a')), 0x42165C4B82BA9800u);
  EXPECT_EQ(sha1_start(std::string(119, 'a')), 0xE017A0AA651097EEu);
  EXPECT_EQ(sha1_start(std::string(120, 'a')), 0xA546533888144CF3u);
}

}  // namespace
}  // namespace bloomery
