#include <algorithm>

#include "ops/common/convert.h"
#include "ops/optimizer/gradient_norm.h"

namespace bloomery {
namespace {

// Enough independent sums to fill the widest vectors and to hide the latency of addition.
constexpr std::int64_t kLanes = 32;
// Bytes by which requests run ahead of the sums, for processors that read one row of addresses more
// slowly than several.
constexpr std::int64_t kAheadBytes = 4096;

template <class T>
double unit_sum(const T* grad, std::int64_t count) {
  double lanes[kLanes] = {};
  const std::int64_t whole = count / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    for (std::int64_t line = 0; line < kLanes * std::int64_t{sizeof(T)}; line += 64) {
      __builtin_prefetch(reinterpret_cast<const char*>(grad + i) + kAheadBytes + line);
    }
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const auto x = static_cast<double>(load(grad + i + lane));
      lanes[lane] += x * x;
    }
  }
  for (std::int64_t i = whole; i < count; ++i) {
    const auto x = static_cast<double>(load(grad + i));
    lanes[i - whole] += x * x;
  }
  for (std::int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::int64_t lane = 0; lane < width; ++lane) {
      lanes[lane] += lanes[lane + width];
    }
  }
  return lanes[0];
}

template <class T>
void squared_norm(ThreadPool& pool, const T* grad, const std::uint8_t* flags, double* partials,
                  std::int64_t count) {
  pool.for_each(num_norm_partials(count), [=](std::int64_t chunk) {
    const std::int64_t end = std::min(count, (chunk + 1) * kNormChunk);
    double sum = 0;
    for (std::int64_t i = chunk * kNormChunk; i < end; i += kUnitSize) {
      const bool counted = (flags[i / kUnitSize] & kUnitUncounted) == 0;
      const double squares = unit_sum(grad + i, std::min(kUnitSize, end - i));
      sum += counted ? squares : 0.0 * squares;  // NaN when not finite
    }
    partials[chunk] = sum;
  });
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const SquaredNormPartials& k) {
  const auto* flags = k.unit_flags.as<std::uint8_t>();
  auto* partials = k.partials.as<double>();
  ThreadPool& pool = stream.device().pool();
  dispatch_floating(k.grad.dtype, [&](auto tag) {
    squared_norm(pool, k.grad.as<typename decltype(tag)::type>(), flags, partials, k.grad.numel());
  });
}

template <>
void run(ThisCpu, Stream&, const SumPartials& k) {
  const auto* partials = k.partials.as<double>();
  double sum = 0;
  for (std::int64_t i = 0; i < k.partials.numel(); ++i) {
    sum += partials[i];
  }
  *k.sum.as<double>() = sum;
}

}  // namespace bloomery
