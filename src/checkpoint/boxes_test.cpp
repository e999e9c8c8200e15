#include "checkpoint/boxes.h"

#include <gtest/gtest.h>

#include <random>

namespace bloomery {
namespace {

Shape random_shape(std::mt19937& random) {
  Shape shape;
  const int rank = static_cast<int>(random() % 5);
  for (int i = 0; i < rank; ++i) {
    shape.append(1 + static_cast<std::int64_t>(random() % 5));
  }
  return shape;
}

Box random_box(const Shape& shape, std::mt19937& random) {
  Box box = Box::whole(shape);
  for (int i = 0; i < shape.rank(); ++i) {
    box.offset[i] = static_cast<std::int64_t>(random() % static_cast<unsigned>(shape[i]));
    box.extent[i] =
        1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(shape[i] - box.offset[i]));
  }
  return box;
}

TEST(Boxes, FlatRangesAreFewBoxesInOrder) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const Box box = random_box(random_shape(random), random);
    const std::int64_t count = box.extent.numel();
    const auto first = static_cast<std::int64_t>(random() % static_cast<unsigned>(count + 1));
    const auto length =
        static_cast<std::int64_t>(random() % static_cast<unsigned>(count - first + 1));
    const std::vector<Box> parts = boxes_of_range(box, first, length);
    EXPECT_LE(static_cast<int>(parts.size()), std::max(1, 2 * box.extent.rank() - 1));
    std::int64_t at = first;
    for (const Box& part : parts) {
      for (std::int64_t i = 0; i < part.extent.numel(); ++i, ++at) {
        ASSERT_EQ(part.global_index(i), box.global_index(at));
      }
    }
    EXPECT_EQ(at, first + length);
  }
}

TEST(Boxes, RunsVisitTheCommonPartOnce) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    const Shape shape = random_shape(random);
    const Box a = random_box(shape, random), b = random_box(shape, random);
    std::vector<int> in_a(static_cast<std::size_t>(shape.numel())), visits(in_a), both(in_a);
    for (std::int64_t i = 0; i < a.extent.numel(); ++i) {
      ++in_a[static_cast<std::size_t>(a.global_index(i))];
    }
    for (std::int64_t i = 0; i < b.extent.numel(); ++i) {
      const auto at = static_cast<std::size_t>(b.global_index(i));
      both[at] = in_a[at];
    }
    if (const auto part = intersect(a, b)) {
      for_each_run(*part, a, b, [&](std::int64_t from, std::int64_t to, std::int64_t length) {
        for (std::int64_t i = 0; i < length; ++i) {
          ASSERT_EQ(a.global_index(from + i), b.global_index(to + i));
          ++visits[static_cast<std::size_t>(a.global_index(from + i))];
        }
      });
    }
    EXPECT_EQ(visits, both);
  }
}

TEST(Boxes, CoverIsExact) {
  std::mt19937 random(3);
  int covered = 0;
  for (int round = 0; round < 500; ++round) {
    const Shape shape = random_shape(random);
    const std::int64_t count = shape.numel();
    const auto cut = static_cast<std::int64_t>(random() % static_cast<unsigned>(count + 1));
    std::vector<Box> boxes = boxes_of_range(Box::whole(shape), 0, cut);
    for (const Box& box : boxes_of_range(Box::whole(shape), cut, count - cut)) {
      boxes.push_back(box);
    }
    EXPECT_TRUE(exactly_cover(shape, boxes));
    Box moved = boxes.back();
    boxes.back() = random_box(shape, random);
    const bool same = boxes.back() == moved;
    covered += same ? 1 : 0;
    EXPECT_EQ(exactly_cover(shape, boxes), same);
  }
  EXPECT_GT(covered, 0);
}

}  // namespace
}  // namespace bloomery
