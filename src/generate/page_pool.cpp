#include "generate/page_pool.h"

#include <numeric>

#include "base/error.h"

namespace bloomery {

PagePool::PagePool(std::int64_t num_pages)
    : users_(static_cast<std::size_t>(num_pages)), free_(static_cast<std::size_t>(num_pages)) {
  std::iota(free_.rbegin(), free_.rend(), 0);
}

std::vector<std::int32_t> PagePool::take(std::int64_t count) {
  check(count <= num_free(), "cache: ", count, " pages are wanted, ", num_free(), " are free");
  const std::vector<std::int32_t> taken(free_.end() - count, free_.end());
  free_.resize(free_.size() - static_cast<std::size_t>(count));
  share(taken);
  return taken;
}

void PagePool::share(std::span<const std::int32_t> pages) {
  for (const std::int32_t page : pages) {
    ++users_[static_cast<std::size_t>(page)];
  }
}

void PagePool::give_back(std::span<const std::int32_t> pages) {
  for (const std::int32_t page : pages) {
    if (--users_[static_cast<std::size_t>(page)] == 0) {
      free_.push_back(page);
    }
  }
}

}  // namespace bloomery
