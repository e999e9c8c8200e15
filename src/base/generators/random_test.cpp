// The random numbers of numpy and torch against arrays made by them (tools/golden/samples.py).
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "base/generators/numpy_random.h"
#include "base/generators/python_random.h"
#include "base/generators/torch_random.h"
#include "base/md5.h"
#include "harness/shared_data.h"

namespace bloomery {
namespace {

nlohmann::json golden(const char* part) {
  return nlohmann::json::parse(golden_file("samples.json")).at(part);
}

template <class T>
std::string md5_of(const std::vector<T>& values) {
  return md5_hex({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

template <class T>
std::vector<T> shuffled(NumpyRandom& random, std::int64_t count) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), T{0});
  random.shuffle(std::span(values));
  return values;
}

// By random.sample of CPython 3.11.
TEST(PythonRandom, PicksWhatPythonPicks) {
  EXPECT_EQ(PythonRandom(1234).sample(100, 7),
            (std::vector<std::uint32_t>{99, 56, 14, 0, 11, 74, 4}));
  EXPECT_EQ(PythonRandom(1234).sample(10, 4), (std::vector<std::uint32_t>{7, 1, 0, 9}));
  EXPECT_EQ(PythonRandom(7).sample(30, 3), (std::vector<std::uint32_t>{10, 4, 12}));
  const std::vector<std::uint32_t> many = PythonRandom(42).sample(1000, 300);
  EXPECT_EQ(std::vector<std::uint32_t>(many.begin(), many.begin() + 4),
            (std::vector<std::uint32_t>{654, 114, 25, 759}));
  EXPECT_EQ(std::accumulate(many.begin(), many.end(), 0U), 152991U);
}

TEST(NumpyRandom, DrawsWhatNumpyDraws) {
  for (const nlohmann::json& expected : golden("random")) {
    SCOPED_TRACE(expected["seed"].dump());
    NumpyRandom random(expected["seed"].get<std::int64_t>());
    for (const int count : {1, 2, 10, 33}) {
      EXPECT_EQ(shuffled<std::int32_t>(random, count),
                expected[concat("shuffle_", count)].get<std::vector<std::int32_t>>());
    }
    EXPECT_EQ(md5_of(shuffled<std::int32_t>(random, 100003)), expected["md5_int32"]);
    EXPECT_EQ(md5_of(shuffled<std::int64_t>(random, 100003)), expected["md5_int64"]);
    EXPECT_EQ(md5_of(shuffled<std::uint32_t>(random, 100003)), expected["md5_uint32"]);
    for (const double value : expected["random"]) {
      EXPECT_EQ(random.random(), value);
    }
    const std::pair<std::int64_t, std::int64_t> ranges[] = {
        {0, 1},         {0, 7},         {1, 2},         {-5, 5},
        {0, 1ll << 31}, {0, 1ll << 32}, {0, 1ll << 40}, {3, 1ll << 62}};
    for (std::size_t i = 0; i < std::size(ranges); ++i) {
      EXPECT_EQ(random.randint(ranges[i].first, ranges[i].second), expected["randint"][i]);
    }
    const double p[] = {6.0 / 11, 3.0 / 11, 2.0 / 11};
    for (const std::int64_t value : expected["choice"]) {
      EXPECT_EQ(random.choice(p), value);
    }
    for (const std::int64_t value : expected["geometric_0.2"]) {
      EXPECT_EQ(random.geometric(0.2), value);
    }
    for (const std::int64_t value : expected["geometric_0.6"]) {
      EXPECT_EQ(random.geometric(0.6), value);
    }
    EXPECT_EQ(random.random(), expected["rand"]);
  }
}

TEST(NumpyRandom, RefusesSeedsThatNumpyRefuses) {
  EXPECT_THROW(NumpyRandom(-1), Error);
  EXPECT_THROW(NumpyRandom(std::int64_t{1} << 32), Error);
  NumpyRandom random(0);
  EXPECT_THROW(random.randint(3, 3), Error);
}

TEST(MersenneTwister, IsTheStandardOne) {
  for (const std::uint32_t seed : {0u, 1u, 1234u, 0xffffffffu}) {
    MersenneTwister ours(seed);
    std::mt19937 standard(seed);
    for (int i = 0; i < 5000; ++i) {
      ASSERT_EQ(ours.next(), standard());
    }
  }
}

TEST(TorchRandperm, IsTorchs) {
  for (const nlohmann::json& expected : golden("randperm")) {
    SCOPED_TRACE(expected.dump());
    const auto order = torch_randperm(expected["count"], expected["seed"]);
    EXPECT_EQ(md5_of(order), expected["md5"]);
    if (expected.contains("order")) {
      EXPECT_EQ(order, expected["order"].get<std::vector<std::uint32_t>>());
    }
  }
  EXPECT_THROW(torch_randperm(std::int64_t{1} << 32, 0), Error);
}

}  // namespace
}  // namespace bloomery
