#include "autograd/parameter.h"

#include <cmath>
#include <cstring>

#include "base/random.h"

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

void initialize(Parameter& parameter, std::uint64_t seed, Stream& stream) {
  const RandomKey key = random_key(seed, parameter.name);
  const std::int64_t count = parameter.box.extent.numel();
  check(count <= parameter.value.numel(), "parameter ", parameter.name, ": value of shape ",
        parameter.value.shape(), " cannot hold its part ", parameter.box.extent);
  stream.fill(parameter.value.data(), 0, parameter.value.bytes());
  dispatch_floating(parameter.value.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> values(static_cast<std::size_t>(count));
    stream.device().pool().for_ranges(count, 16384, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const double x = initial_value(parameter.init, key, parameter.box.global_index(i));
        if constexpr (std::is_same_v<T, double>) {
          values[i] = x;
        } else {
          values[i] = T(static_cast<float>(x));
        }
      }
    });
    stream.copy(parameter.value.data(), values.data(), values.size() * sizeof(T));
    stream.synchronize();
  });
}

}  // namespace bloomery
