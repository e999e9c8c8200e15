#include "autograd/parameter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "base/normals.h"

namespace bloomery {
namespace {

double initial_value(const Init& init, RandomKey key, std::int64_t index) {
  switch (init.kind) {
    case Init::Kind::zeros:
      return 0.0;
    case Init::Kind::ones:
      return 1.0;
    case Init::Kind::normal:
      return init.scale * random_normal(key, static_cast<std::uint64_t>(index));
    case Init::Kind::uniform:
      return init.scale * (2.0 * random_uniform(key, static_cast<std::uint64_t>(index)) - 1.0);
  }
  return 0.0;
}

// The places of elements [begin, begin + indices) of a box in the whole tensor: one after another
// along a row.
void fill_global_indices(const Box& box, std::int64_t begin, std::span<std::uint64_t> indices) {
  const std::int64_t row = box.extent.rank() == 0 ? 1 : box.extent.back();
  std::int64_t left = 0, index = 0;  // in this row
  for (std::uint64_t& each : indices) {
    if (left == 0) {
      index = box.global_index(begin);
      left = row - begin % row;
    }
    each = static_cast<std::uint64_t>(index++);
    ++begin;
    --left;
  }
}

// Elements [begin, end) of a parameter with normal initial numbers.
void fill_normals(const Parameter& parameter, RandomKey key, std::int64_t begin, std::int64_t end,
                  std::span<float> numbers) {
  std::array<std::uint64_t, 1024> indices;
  while (begin < end) {
    const auto count = std::min<std::size_t>(indices.size(), static_cast<std::size_t>(end - begin));
    const std::span<std::uint64_t> some(indices.data(), count);
    fill_global_indices(parameter.box, begin, some);
    scaled_normals(key, parameter.init.scale, some,
                   numbers.subspan(static_cast<std::size_t>(begin), count));
    begin += static_cast<std::int64_t>(count);
  }
}

}  // namespace

Parameter make_parameter(std::string name, const Box& box, Init init, bool decay) {
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.box = box;
  parameter.local_shape = box.extent;
  parameter.init = init;
  parameter.decay = decay;
  return parameter;
}

template <class Real>
void initial_numbers(const Parameter& parameter, std::uint64_t seed, ThreadPool& pool,
                     std::span<Real> numbers) {
  const RandomKey key = random_key(seed, parameter.name);
  const std::int64_t count = parameter.box.extent.numel();
  check(count <= static_cast<std::int64_t>(numbers.size()), "parameter ", parameter.name,
        ": a buffer of ", numbers.size(), " elements cannot hold its part ", parameter.box.extent);
  pool.for_ranges(count, 16384, [&](std::int64_t begin, std::int64_t end) {
    if constexpr (std::is_same_v<Real, float>) {
      if (parameter.init.kind == Init::Kind::normal) {
        return fill_normals(parameter, key, begin, end, numbers);
      }
    }
    for (std::int64_t i = begin; i < end; ++i) {
      numbers[static_cast<std::size_t>(i)] =
          static_cast<Real>(initial_value(parameter.init, key, parameter.box.global_index(i)));
    }
  });
  std::fill(numbers.begin() + count, numbers.end(), Real{0});
}
template void initial_numbers(const Parameter&, std::uint64_t, ThreadPool&, std::span<float>);
template void initial_numbers(const Parameter&, std::uint64_t, ThreadPool&, std::span<double>);

void initialize(Parameter& parameter, std::uint64_t seed, Stream& stream) {
  if (stream.abstract()) {
    return;  // nothing would hold the numbers
  }
  dispatch_floating(parameter.value.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto count = static_cast<std::size_t>(parameter.value.numel());
    std::vector<Accumulator<T>> numbers(count);
    initial_numbers(parameter, seed, stream.device().pool(), std::span(numbers));
    std::vector<T> values(numbers.begin(), numbers.end());
    stream.copy(parameter.value.data(), values.data(), parameter.value.bytes());
    stream.synchronize();
  });
}

}  // namespace bloomery
