#include "apps/bench/rows.h"

#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/matmul/matmul.h"

namespace bloomery {

Tensor BenchSetup::in(DType type, const Shape& shape, float scale) {
  // A block of random numbers, repeated: enough to keep arithmetic honest.
  constexpr std::int64_t kBlock = 1 << 16;
  const RandomKey key = random_key(1, "bench");
  const std::int64_t count = std::min(kBlock, shape.numel());
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(random_normal(key, i));
  }
  const Tensor block = Tensor::from_host(stream, values, {count});
  const Tensor flat = out(type, {shape.numel()});
  for (std::int64_t begin = 0; begin < shape.numel(); begin += count) {
    const std::int64_t end = std::min(begin + count, shape.numel());
    launch(
        stream,
        ScaleAdd{.x = block.slice(0, end - begin), .y = flat.slice(begin, end), .factor = scale});
  }
  return flat.reshape(shape);
}

Tensor BenchSetup::integers(const Shape& shape, std::int64_t limit) {
  const RandomKey key = random_key(1, "bench integers");
  std::vector<std::int32_t> values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int32_t>(random_uniform(key, i) * static_cast<double>(limit));
  }
  bytes += static_cast<double>(values.size() * sizeof(std::int32_t));
  return keep(Tensor::from_host(stream, values, shape));
}

Tensor BenchSetup::out(DType type, const Shape& shape) {
  Tensor tensor = keep(Tensor::zeros(stream, type, shape));
  bytes += static_cast<double>(tensor.bytes());
  return tensor;
}

Tensor BenchSetup::updated(DType type, const Shape& shape) {
  Tensor tensor = out(type, shape);
  bytes += static_cast<double>(tensor.bytes());
  return tensor;
}

std::string shape_text(std::initializer_list<std::int64_t> extents) {
  std::string text;
  for (const std::int64_t extent : extents) {
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  }
  return text;
}

namespace {

void copy_with_all_threads(Stream& stream, const Tensor& to, const Tensor& from) {
  if (stream.on_cuda()) {
    stream.copy(to.data(), from.data(), to.bytes());
    return;
  }
  constexpr std::int64_t kGrain = 1 << 20;
  stream.device().pool().for_ranges(to.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(static_cast<char*>(to.data()) + begin,
                static_cast<const char*>(from.data()) + begin,
                static_cast<std::size_t>(end - begin));
  });
}

}  // namespace

BenchRow copy_ceiling(std::int64_t mebibytes) {
  return {"copy", std::to_string(mebibytes) + " MiB",
          [bytes = mebibytes << 20](BenchSetup& setup) -> std::function<void()> {
            const Tensor from = setup.out(DType::uint8, {bytes});
            const Tensor to = setup.out(DType::uint8, {bytes});
            return [from, to, &stream = setup.stream] { copy_with_all_threads(stream, to, from); };
          }};
}

BenchRow product_ceiling(std::int64_t n) {
  return {"product", shape_text({n, n, n}), [n](BenchSetup& setup) {
            const Tensor a = setup.in({n, n}), b = setup.in({n, n}), d = setup.out({n, n});
            setup.flops = 2 * static_cast<double>(n * n * n);
            return launching(setup, Matmul{.a = a, .b = b, .d = d}, {a, b, d});
          }};
}

}  // namespace bloomery
