#include "ops/cache/cache.h"

#include "harness/device_test.h"

namespace bloomery::testing {
namespace {

class CacheTest : public DeviceTest {};

std::vector<float> slot_numbers(Stream& stream, const Tensor& layer, std::int64_t slot) {
  return layer.slice(slot, slot + 1).to_host<float>(stream);
}

std::vector<std::int32_t> slots(Stream& stream, Cache& cache) {
  const std::vector<std::int32_t> none(static_cast<std::size_t>(cache.num_sequences()), 0);
  cache.begin(none);
  std::vector<std::int32_t> found(none.size());
  stream.copy(found.data(), cache.places().slots, found.size() * sizeof(std::int32_t));
  stream.synchronize();
  return found;
}

TEST_P(CacheTest, SelectCopiesOnlySharedParents) {
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  Cache cache(stream, 3, 2);
  const Tensor layer = cache.layer(7, DType::fp32, 1, 1);
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  stream.copy(layer.data(), numbers.data(), layer.bytes());
  stream.synchronize();
  cache.begin(std::vector<std::int32_t>{2, 1, 2});
  EXPECT_TRUE(cache.was_empty());

  cache.select(std::vector<std::int64_t>{2, 2, 0});  // the second child of 2 takes the slot of 1
  EXPECT_EQ(slots(stream, cache), (std::vector<std::int32_t>{2, 1, 0}));
  EXPECT_FALSE(cache.was_empty());
  EXPECT_EQ(slot_numbers(stream, layer, 0), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(slot_numbers(stream, layer, 1), (std::vector<float>{9, 10, 11, 12}));
  EXPECT_EQ(cache.length(2), 2);

  cache.select(std::vector<std::int64_t>{2});
  EXPECT_EQ(cache.num_sequences(), 1);
  EXPECT_EQ(slots(stream, cache), (std::vector<std::int32_t>{0}));
  cache.select(std::vector<std::int64_t>{0, 0, 0});
  EXPECT_EQ(slots(stream, cache), (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(slot_numbers(stream, layer, 2), (std::vector<float>{1, 2, 3, 4}));
}

TEST_P(CacheTest, PlacesMayBeTheDevices) {
  Machine machine(GetParam());
  Cache cache(machine.stream, 3, 8);
  cache.begin(std::vector<std::int32_t>{2, 1, 2});
  const std::int32_t numbers[6] = {2, 0, 5, 6, 1, 1};
  cache.begin({numbers, numbers + 2, numbers + 4}, 2);
  EXPECT_EQ(cache.places().lengths, numbers + 2);
  EXPECT_EQ(cache.num_rows(), 2);
  EXPECT_EQ(cache.batch_length(), 1);
  EXPECT_FALSE(cache.was_empty());
  EXPECT_EQ(cache.length(0), 2);
  EXPECT_THROW(cache.begin({numbers, numbers + 2, numbers + 4}, 4), Error);
}

TEST_P(CacheTest, SlotsMayShareTheirFirstPages) {
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  Cache cache(stream, 2, 3 * kCachePage, 4);
  const Tensor layer = cache.layer(0, DType::fp32, 1, 1);
  std::vector<float> numbers(static_cast<std::size_t>(layer.numel()));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(i);
  }
  stream.copy(layer.data(), numbers.data(), layer.bytes());
  stream.synchronize();
  cache.set_pages(0, std::vector<std::int32_t>{3, 1});
  cache.set_pages(1, std::vector<std::int32_t>{3, 0, 2});
  cache.copy_slot(0, 1, kCachePage + 5);  // five tokens of page 1, the second of slot 0, to page 0
  std::copy_n(numbers.begin() + 2 * kCachePage, 10, numbers.begin());
  EXPECT_EQ(layer.to_host<float>(stream), numbers);
  cache.begin(std::vector<Cache::Piece>{{1, 0, 1}});
  std::vector<std::int32_t> pages(3);
  stream.copy(pages.data(), cache.places().pages + cache.places().pages_per_slot, 12);
  stream.synchronize();
  EXPECT_EQ(pages, (std::vector<std::int32_t>{3, 0, 2}));
  EXPECT_THROW(cache.set_pages(0, std::vector<std::int32_t>{4}), Error);
  EXPECT_THROW(cache.set_pages(2, std::vector<std::int32_t>{0}), Error);
  EXPECT_THROW(cache.set_pages(0, std::vector<std::int32_t>{0, 1, 2, 3}), Error);
  EXPECT_THROW(cache.select(std::vector<std::int64_t>{0, 1}), Error);
}

TEST_P(CacheTest, RefusesWhatDoesNotFit) {
  Machine machine(GetParam());
  Cache cache(machine.stream, 2, 4);
  EXPECT_THROW(cache.places(), Error);
  EXPECT_THROW(cache.begin(std::vector<std::int32_t>{1}), Error);
  EXPECT_THROW(cache.begin(std::vector<std::int32_t>{1, 5}), Error);
  EXPECT_THROW(cache.select(std::vector<std::int64_t>{0, 1, 1}), Error);
  EXPECT_THROW(cache.select(std::vector<std::int64_t>{2}), Error);
  EXPECT_THROW(Cache(machine.stream, 0, 4), Error);
  cache.layer(0, DType::fp32, 2, 8);
  EXPECT_THROW(cache.layer(0, DType::bf16, 2, 8), Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, CacheTest, every_device(), device_label);

}  // namespace
}  // namespace bloomery::testing
