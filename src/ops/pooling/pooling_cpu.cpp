#include <cmath>
#include <cstring>

#include "ops/common/convert.h"
#include "ops/pooling/pooling.h"

namespace bloomery {
namespace {

constexpr std::int64_t kGrain = 4096;

}  // namespace

template <>
void run(ThisCpu, Stream&, const FirstTokens& k) {
  const std::int64_t rows = k.x.shape[0];
  const std::size_t bytes = static_cast<std::size_t>(k.y.shape[1]) * size_of(k.y.dtype);
  for (std::int64_t b = 0; b < k.y.shape[0]; ++b) {
    const std::int64_t row = b * k.length - k.first_token;
    char* const to = k.y.as<char>() + static_cast<std::size_t>(b) * bytes;
    if (0 <= row && row < rows) {
      std::memcpy(to, k.x.as<char>() + static_cast<std::size_t>(row) * bytes, bytes);
    } else {
      std::memset(to, 0, bytes);
    }
  }
}

template <>
void run(ThisCpu, Stream&, const FirstTokensGradient& k) {
  const std::int64_t rows = k.grad_x.shape[0], columns = k.grad_x.shape[1];
  if (!k.add) {
    std::memset(k.grad_x.data, 0, static_cast<std::size_t>(k.grad_x.bytes()));
  }
  dispatch_floating(k.grad_x.dtype, [&](auto type) {
    using Real = typename decltype(type)::type;
    for (std::int64_t b = 0; b < k.grad_y.shape[0]; ++b) {
      const std::int64_t row = b * k.length - k.first_token;
      if (row < 0 || row >= rows) {
        continue;
      }
      const Real* const from = k.grad_y.template as<Real>() + b * columns;
      Real* const to = k.grad_x.template as<Real>() + row * columns;
      for (std::int64_t c = 0; c < columns; ++c) {
        store(to + c, load(to + c) + load(from + c));
      }
    }
  });
}

template <>
void run(ThisCpu, Stream& stream, const TanhForward& k) {
  dispatch_floating(k.y.dtype, [&](auto type) {
    using Real = typename decltype(type)::type;
    const Real* const x = k.x.template as<Real>();
    Real* const y = k.y.template as<Real>();
    stream.device().pool().for_ranges(k.y.numel(), kGrain,
                                      [=](std::int64_t begin, std::int64_t end) {
                                        for (std::int64_t i = begin; i < end; ++i) {
                                          store(y + i, std::tanh(load(x + i)));
                                        }
                                      });
  });
}

template <>
void run(ThisCpu, Stream& stream, const TanhBackward& k) {
  dispatch_floating(k.y.dtype, [&](auto type) {
    using Real = typename decltype(type)::type;
    using Sum = Accumulator<Real>;
    const Real* const y = k.y.template as<Real>();
    const Real* const grad_y = k.grad_y.template as<Real>();
    Real* const grad_x = k.grad_x.template as<Real>();
    const auto body = [=, add = k.add](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const Sum grad = load(grad_y + i) * (Sum(1) - load(y + i) * load(y + i));
        store(grad_x + i, add ? load(grad_x + i) + grad : grad);
      }
    };
    stream.device().pool().for_ranges(k.y.numel(), kGrain, body);
  });
}

}  // namespace bloomery
