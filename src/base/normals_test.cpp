#include "base/normals.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace bloomery {
namespace {

std::vector<float> one_by_one(RandomKey key, double scale,
                              const std::vector<std::uint64_t>& indices) {
  std::vector<float> numbers;
  for (const std::uint64_t index : indices) {
    numbers.push_back(static_cast<float>(scale * random_normal(key, index)));
  }
  return numbers;
}

TEST(ScaledNormals, HaveTheBitsOfSingleOnes) {
  std::vector<std::uint64_t> indices(300'000);
  for (const std::uint64_t first : {std::uint64_t{0}, (std::uint64_t{1} << 33) - 7}) {
    std::iota(indices.begin(), indices.end(), first);
    for (const double scale : {0.02, 1.0, 1e-30, 1e-44}) {
      const RandomKey key = random_key(1234, "a weight");
      std::vector<float> found(indices.size());
      scaled_normals(key, scale, indices, found);
      const std::vector<float> expected = one_by_one(key, scale, indices);
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0)
          << first << ' ' << scale;
    }
  }
}

TEST(ScaledNormals, TakeAnyCountAndOrder) {
  std::vector<std::uint64_t> indices;
  for (std::uint64_t i = 0; i < 700; ++i) {
    indices.push_back(i * 2654435761 % 100'003);
  }
  for (const std::size_t count : {0u, 1u, 255u, 256u, 257u, 700u}) {
    const std::vector some(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(count));
    std::vector<float> found(count);
    scaled_normals(7, 0.5, some, found);
    EXPECT_EQ(found, one_by_one(7, 0.5, some)) << count;
  }
}

}  // namespace
}  // namespace bloomery
