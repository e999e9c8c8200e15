#include "generate/page_pool.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"

namespace bloomery {
namespace {

TEST(PagePool, APageIsFreeWhenItsLastUserGaveItBack) {
  PagePool pool(5);
  const std::vector<std::int32_t> first = pool.take(3), second = pool.take(2);
  std::vector<std::int32_t> all = first;
  all.insert(all.end(), second.begin(), second.end());
  std::ranges::sort(all);
  EXPECT_EQ(all, (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
  EXPECT_THROW(pool.take(1), Error);
  pool.share(std::span(first).first(2));
  pool.give_back(first);
  EXPECT_EQ(pool.num_free(), 1);
  pool.give_back(std::span(first).first(2));
  EXPECT_EQ(pool.num_free(), 3);
  pool.give_back(second);
  EXPECT_EQ(pool.num_free(), pool.num_pages());
}

}  // namespace
}  // namespace bloomery
