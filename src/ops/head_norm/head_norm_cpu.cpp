#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "ops/common/convert.h"
#include "ops/head_norm/head_norm.h"

namespace bloomery {
namespace {

// The mean of term(i), added up lane by lane.
template <class Real, class Term>
Real mean_of(std::int64_t count, const Term& term) {
  constexpr std::int64_t kLanes = 16;
  std::array<Real, kLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += term(i + lane);
    }
  }
  for (; i < count; ++i) {
    lanes[i % kLanes] += term(i);
  }
  Real sum = 0;
  for (const Real lane : lanes) {
    sum += lane;
  }
  return sum / static_cast<Real>(count);
}

template <class T>
Accumulator<T> inverse_rms(const T* x, std::int64_t count, float epsilon) {
  using Real = Accumulator<T>;
  const Real square =
      mean_of<Real>(count, [&](std::int64_t i) { return load(x + i) * load(x + i); });
  return Real(1) / std::sqrt(square + static_cast<Real>(epsilon));
}

// Calls body(offset of the head's first channel, kind) for the heads of tokens [begin, end): kind 0
// is a query, 1 a key, 2 a value.
template <class Body>
void for_heads(const HeadNormOptions& o, std::int64_t begin, std::int64_t end, const Body& body) {
  const std::int64_t heads = o.heads_per_group + 2;
  for (std::int64_t row = begin * o.num_groups * heads; row < end * o.num_groups * heads; ++row) {
    const std::int64_t head = row % heads;
    body(row * o.head_dim, head < o.heads_per_group ? 0 : head == o.heads_per_group ? 1 : 2);
  }
}

template <class T>
void forward(const HeadNormForward& k, std::int64_t begin, std::int64_t end) {
  using Real = Accumulator<T>;
  const std::int64_t dim = k.options.head_dim;
  const Real one = k.options.one_plus_gain ? 1 : 0;
  for_heads(k.options, begin, end, [&](std::int64_t at, int kind) {
    const T* const x = k.x.as<T>() + at;
    T* const y = k.y.as<T>() + at;
    if (kind == 2) {
      std::copy_n(x, dim, y);
      return;
    }
    const T* const gain = (kind == 0 ? k.query_gain : k.key_gain).as<T>();
    const Real inverse = inverse_rms(x, dim, k.options.epsilon);
    for (std::int64_t c = 0; c < dim; ++c) {
      store(y + c, load(x + c) * inverse * (one + load(gain + c)));
    }
  });
}

template <class T>
void backward(const HeadNormBackward& k, std::int64_t begin, std::int64_t end,
              Accumulator<T>* sums) {
  using Real = Accumulator<T>;
  const std::int64_t dim = k.options.head_dim;
  const Real one = k.options.one_plus_gain ? 1 : 0;
  std::vector<double> totals(static_cast<std::size_t>(2 * dim), 0.0);
  const auto write = [&](std::int64_t at, Real value) {
    if (k.dx) {
      T* const to = k.dx.as<T>() + at;
      store(to, k.add ? load(to) + value : value);
    }
  };
  for_heads(k.options, begin, end, [&](std::int64_t at, int kind) {
    const T *const x = k.x.as<T>() + at, *const dy = k.dy.as<T>() + at;
    if (kind == 2) {
      for (std::int64_t c = 0; c < dim; ++c) {
        write(at + c, load(dy + c));
      }
      return;
    }
    const T* const gain = (kind == 0 ? k.query_gain : k.key_gain).as<T>();
    double* const total = totals.data() + kind * dim;
    const Real inverse = inverse_rms(x, dim, k.options.epsilon);
    const auto grad = [&](std::int64_t c) { return load(dy + c) * (one + load(gain + c)); };
    const auto normalised = [&](std::int64_t c) { return load(x + c) * inverse; };
    const Real mean = mean_of<Real>(dim, [&](std::int64_t c) { return grad(c) * normalised(c); });
    for (std::int64_t c = 0; c < dim; ++c) {
      total[c] += static_cast<double>(load(dy + c) * normalised(c));
      write(at + c, inverse * (grad(c) - normalised(c) * mean));
    }
  });
  for (std::int64_t i = 0; i < 2 * dim; ++i) {
    sums[i] = static_cast<Real>(totals[static_cast<std::size_t>(i)]);
  }
}

// Calls body(block, begin, end) for blocks of tokens.
template <class Body>
void for_blocks(Stream& stream, std::int64_t num_tokens, const Body& body) {
  constexpr std::int64_t kBlock = kTokensPerHeadNormPartial;
  stream.device().pool().for_each((num_tokens + kBlock - 1) / kBlock, [&](std::int64_t block) {
    body(block, block * kBlock, std::min((block + 1) * kBlock, num_tokens));
  });
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const HeadNormForward& k) {
  dispatch_floating(k.x.dtype, [&](auto tag) {
    for_blocks(stream, k.num_tokens, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
      forward<typename decltype(tag)::type>(k, begin, end);
    });
  });
}

template <>
void run(ThisCpu, Stream& stream, const HeadNormBackward& k) {
  dispatch_floating(k.x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_blocks(stream, k.num_tokens, [&](std::int64_t block, std::int64_t begin, std::int64_t end) {
      backward<T>(k, begin, end, k.partials.as<Accumulator<T>>() + block * 2 * k.options.head_dim);
    });
  });
}

}  // namespace bloomery
