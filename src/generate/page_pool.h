// Pages of a KV cache (ops/cache) that sequences take and give back. Samples of one prompt share
// its full pages.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace bloomery {

class PagePool {
 public:
  explicit PagePool(std::int64_t num_pages);

  std::int64_t num_pages() const { return static_cast<std::int64_t>(users_.size()); }
  std::int64_t num_free() const { return static_cast<std::int64_t>(free_.size()); }

  std::vector<std::int32_t> take(std::int64_t count);  // there must be as many
  void share(std::span<const std::int32_t> pages);     // one more user of each
  void give_back(std::span<const std::int32_t> pages);

 private:
  std::vector<std::int32_t> users_, free_;
};

}  // namespace bloomery
