#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <limits>
#include <set>

#include "tensor/box.h"
#include "tensor/cross_stream_refs.h"

namespace bloomery {
namespace {

class TensorTest : public ::testing::Test {
 protected:
  Tensor counting(const Shape& shape) {
    std::vector<std::int32_t> values(shape.numel());
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<std::int32_t>(i);
    }
    return Tensor::from_host(stream, values, shape);
  }
  std::vector<std::int32_t> host(const Tensor& tensor) {
    return tensor.to_host<std::int32_t>(stream);
  }

  Device device{DeviceOptions{.num_threads = 1}};
  Stream stream{device};
};

TEST_F(TensorTest, KnowsItsSize) {
  const Tensor tensor = Tensor::zeros(stream, DType::bf16, {3, 0, 5});
  EXPECT_TRUE(tensor);  // empty, but not null
  EXPECT_EQ(tensor.numel(), 0);
  EXPECT_EQ(tensor.bytes(), 0u);
  EXPECT_FALSE(Tensor());
  const Tensor other = Tensor::zeros(stream, DType::fp64, {3, 2});
  EXPECT_EQ(other.bytes(), 48u);
  EXPECT_EQ(other.to_host<double>(stream), std::vector<double>(6, 0.0));
  EXPECT_THROW(other.to_host<float>(stream), Error);
  EXPECT_THROW(Tensor::from_host<float>(stream, {1, 2, 3}, {2}), Error);
}

TEST_F(TensorTest, SlicesShareStorage) {
  const Tensor whole = counting({4, 2, 3});
  const Tensor middle = whole.slice(1, 3);
  EXPECT_EQ(middle.shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(middle.storage(), whole.storage());
  EXPECT_EQ(host(middle), (std::vector<std::int32_t>{6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}));
  EXPECT_EQ(host(middle.slice(1, 2).slice(0, 1)),
            (std::vector<std::int32_t>{12, 13, 14, 15, 16, 17}));
  EXPECT_EQ(whole.slice(4, 4).numel(), 0);
  EXPECT_THROW(whole.slice(-1, 2), Error);
  EXPECT_THROW(whole.slice(3, 2), Error);
  EXPECT_THROW(whole.slice(0, 5), Error);
  EXPECT_THROW(counting({}).slice(0, 1), Error);
  EXPECT_EQ(counting({0, 3}).slice(0, 0).shape(), (Shape{0, 3}));
}

TEST_F(TensorTest, StorageLivesAsLongAsAnyHandle) {
  Tensor part;
  { part = counting({100}).slice(50, 60); }
  EXPECT_EQ(host(part).front(), 50);
  const std::size_t used = stream.memory()->statistics().used_bytes;
  part = {};
  EXPECT_LT(stream.memory()->statistics().used_bytes, used);
}

TEST_F(TensorTest, ReshapeAndRange) {
  const Tensor flat = counting({24});
  EXPECT_EQ(host(flat.reshape({2, 12}).slice(1, 2)).front(), 12);
  EXPECT_THROW(flat.reshape({5, 5}), Error);
  const Tensor range = flat.range(5, {2, 3});
  EXPECT_EQ(range.shape(), (Shape{2, 3}));
  EXPECT_EQ(host(range), (std::vector<std::int32_t>{5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(flat.range(24, {0}).numel(), 0);
  EXPECT_THROW(flat.range(20, {5}), Error);
  EXPECT_THROW(flat.range(-1, {5}), Error);
}

TEST(ShapeTest, RowsColumnsAndLimits) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.numel(), 24);
  EXPECT_EQ(shape.rows(), 6);
  EXPECT_EQ(shape.back(), 4);
  EXPECT_EQ(Shape{}.numel(), 1);
  EXPECT_EQ(Shape{}.rows(), 1);
  EXPECT_EQ(concat(shape), "[2, 3, 4]");
  EXPECT_NE(shape, (Shape{2, 3}));
  EXPECT_NE(shape, (Shape{2, 3, 5}));
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1}), Error);
  EXPECT_THROW((Shape{-1}), Error);
}

// The elements of a box, by walking the whole tensor.
std::vector<std::int64_t> elements(const Box& box) {
  std::vector<std::int64_t> inside;
  for (std::int64_t index = 0; index < box.global.numel(); ++index) {
    bool in = true;
    std::int64_t rest = index;
    for (int dim = box.global.rank() - 1; dim >= 0; --dim) {
      const std::int64_t place = rest % box.global[dim];
      rest /= box.global[dim];
      in = in && place >= box.offset[dim] && place < box.offset[dim] + box.extent[dim];
    }
    if (in) {
      inside.push_back(index);
    }
  }
  return inside;
}

TEST(BoxTest, GlobalIndexAgreesWithBruteForce) {
  for (const Shape& shape : {Shape{12}, Shape{4, 6}, Shape{2, 6, 4}, Shape{2, 4, 3, 6}}) {
    const Box whole = Box::whole(shape);
    for (int dim = 0; dim < shape.rank(); ++dim) {
      for (const int count : {1, 2, 3}) {
        if (shape[dim] % count != 0) {
          EXPECT_THROW(whole.split(dim, 0, count), Error);
          continue;
        }
        std::set<std::int64_t> covered;
        for (int index = 0; index < count; ++index) {
          const Box part = whole.split(dim, index, count);
          const std::vector<std::int64_t> expected = elements(part);
          ASSERT_EQ(static_cast<std::int64_t>(expected.size()), part.extent.numel());
          for (std::int64_t i = 0; i < part.extent.numel(); ++i) {
            EXPECT_EQ(part.global_index(i), expected[i]);
            covered.insert(expected[i]);
          }
        }
        EXPECT_EQ(static_cast<std::int64_t>(covered.size()), shape.numel());
      }
    }
    if (shape.rank() >= 2 && shape[0] % 2 == 0 && shape[1] % 2 == 0) {  // cut twice
      const Box corner = whole.split(0, 1, 2).split(1, 0, 2);
      EXPECT_EQ(corner.global_index(0), elements(corner).front());
      EXPECT_EQ(corner.global_index(corner.extent.numel() - 1), elements(corner).back());
    }
  }
}

// Nearest value with `digits` significant bits and smallest exponent `lowest`, ties to even, by
// arithmetic in double; the definition of both 16-bit formats.
double nearest(double x, int digits, int lowest, double largest) {
  if (x == 0 || !std::isfinite(x)) {
    return x;
  }
  int exponent = 0;
  std::frexp(x, &exponent);
  const int step = std::max(exponent - digits, lowest);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -step)), step);
  return std::abs(rounded) > largest ? std::copysign(INFINITY, x) : rounded;
}
double nearest_bf16(double x) {
  return nearest(x, 8, -133, static_cast<double>(3.3895313892515355e38));
}
double nearest_fp16(double x) { return nearest(x, 11, -24, 65504); }

TEST(DTypeTest, EveryBf16AndItsNeighboursRoundToNearestEven) {
  for (std::uint32_t high = 0; high < 0x10000; ++high) {
    for (const std::uint32_t low : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      const auto x = std::bit_cast<float>(high << 16 | low);
      const bfloat16 rounded(x);
      if (std::isnan(x)) {
        ASSERT_TRUE(std::isnan(static_cast<float>(rounded)));
      } else {
        ASSERT_EQ(static_cast<double>(static_cast<float>(rounded)), nearest_bf16(x)) << x;
        ASSERT_EQ(std::signbit(static_cast<float>(rounded)), std::signbit(x)) << x;
      }
    }
  }
}

TEST(DTypeTest, EveryFp16SurvivesAndMidpointsGoToEven) {
  float before = -INFINITY;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = std::bit_cast<float16>(static_cast<std::uint16_t>(bits));
    const auto x = static_cast<float>(half);
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(float16(x))));
      continue;
    }
    ASSERT_EQ(float16(x).bits, bits);
    const float midpoint = std::isfinite(before) ? (x + before) / 2 : x;
    for (const float y :
         {midpoint, std::nextafter(midpoint, INFINITY), std::nextafter(midpoint, -INFINITY)}) {
      ASSERT_EQ(static_cast<double>(static_cast<float>(float16(y))), nearest_fp16(y)) << y;
    }
    before = x;
  }
  EXPECT_TRUE(std::isinf(static_cast<float>(float16(65520.0f))));  // the tie goes to infinity
  EXPECT_EQ(static_cast<float>(float16(65519.0f)), 65504.0f);
  EXPECT_EQ(static_cast<float>(float16(std::ldexp(1.0f, -25))), 0.0f);  // a tie, to even
}

TEST(DTypeTest, NamesAndSizes) {
  const std::pair<DType, std::size_t> sizes[] = {
      {DType::fp32, 4},  {DType::bf16, 2},  {DType::fp16, 2}, {DType::fp64, 8},
      {DType::int32, 4}, {DType::int64, 8}, {DType::uint8, 1}};
  std::set<std::string> names;
  for (const auto& [dtype, size] : sizes) {
    EXPECT_EQ(size_of(dtype), size);
    names.insert(name(dtype));
  }
  EXPECT_EQ(names.size(), 7u);
  EXPECT_EQ(accumulation_dtype(DType::bf16), DType::fp32);
  EXPECT_EQ(accumulation_dtype(DType::fp64), DType::fp64);
  EXPECT_THROW(dispatch_floating(DType::int32, [](auto) {}), Error);
}

Tensor greedy_op(Stream& stream) {
  return Tensor::empty(stream, DType::fp32, {std::int64_t{1} << 50});
}

TEST(TensorMemory, RunningOutNamesTheOpAndTheShape) {
  Device device({.num_threads = 1});
  Stream stream(device);
  try {
    greedy_op(stream);
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    for (const char* part : {"greedy_op", "fp32[1125899906842624]", "out of memory"}) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
}

// Without keeping, the pool would hand the block out again while the other stream is to read it.
TEST(CrossStreamRefs, StaysUntilTheOtherStreamIsPastItsUse) {
  Device device({.num_threads = 1});
  Stream owner(device), other(device, StreamMode::queued);
  CrossStreamRefs kept(owner);
  std::promise<void> gate;
  Tensor block = Tensor::zeros(owner, DType::fp32, {1024});
  const void* const place = block.data();
  other.submit([opened = gate.get_future().share()] { opened.wait(); });
  auto done = std::make_shared<Event>(device);
  done->record(other);
  kept.keep_until(std::move(block), done);
  EXPECT_NE(Tensor::empty(owner, DType::fp32, {1024}).data(), place);
  gate.set_value();
  kept.wait();
  EXPECT_EQ(Tensor::empty(owner, DType::fp32, {1024}).data(), place);
}

TEST(CrossStreamRefs, DoesNotPileUp) {
  Device device({.num_threads = 1});
  Stream owner(device), other(device, StreamMode::queued);
  CrossStreamRefs kept(owner);
  for (int i = 0; i < 100; ++i) {
    auto done = std::make_shared<Event>(device);
    done->record(other);
    kept.keep_until(Tensor::empty(owner, DType::fp32, {1024}), done);
  }
  EXPECT_LE(owner.memory()->statistics().peak_used_bytes, 8u * 4096);
}

}  // namespace
}  // namespace bloomery
