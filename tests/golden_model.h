// A stored model of tools/golden: its numbers in a rank, and what a rank computes beside what was
// stored.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/safetensors.h"
#include "train/step/rank.h"

namespace bloomery::testing {

template <class T>
std::vector<T> stored(const SafetensorsFile& file, const std::string& name) {
  const auto bytes = file.bytes(name);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The stored "weight.NAME", fp32, in the parameter's dtype.
inline void load_stored(const SafetensorsFile& file, Parameter& parameter, Stream& stream) {
  const std::vector<float> values = stored<float>(file, "weight." + parameter.name);
  dispatch_floating(parameter.value.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> cast(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      cast[i] = T(values[i]);
    }
    stream.copy(parameter.value.data(), cast.data(), cast.size() * sizeof(T));
    stream.synchronize();
  });
}

// The `index`-th batch of those that lie one after another in tensors "STEM.FIELD".
inline HostBatch stored_batch(const SafetensorsFile& file, const std::string& stem,
                              const SampleFields& fields, std::int64_t num_sequences,
                              std::int64_t index) {
  HostBatch batch(DeviceKind::cpu, fields, num_sequences);
  for (const SampleField& field : batch.fields()) {
    const auto set = [&]<class T>(std::span<T> to) {
      const std::vector<T> all = stored<T>(file, stem + std::string(field.name));
      const auto count = static_cast<std::int64_t>(to.size());
      std::copy_n(all.begin() + index * count, count, to.begin());
    };
    if (field.dtype == DType::fp32) {
      set(batch.array<float>(field.name));
    } else {
      set(batch.array<std::int32_t>(field.name));
    }
  }
  std::ranges::fill(batch.samples(), 0);
  return batch;
}

inline std::vector<double> on_host(const Tensor& tensor, Stream& stream) {
  if (tensor.dtype() == DType::fp64) {
    return tensor.to_host<double>(stream);
  }
  const std::vector<float> values = tensor.to_host<float>(stream);
  return {values.begin(), values.end()};
}

inline double norm_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double x : values) {
    sum += x * x;
  }
  return std::sqrt(sum);
}

inline double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (const double x : values) {
    largest = std::max(largest, std::abs(x));
  }
  return largest;
}

// The stored rows of `columns` numbers beside those that a rank has, which may have more columns.
inline std::vector<double> differences(const std::vector<double>& actual,
                                       const std::vector<double>& expected, std::int64_t columns) {
  const auto rows = static_cast<std::int64_t>(expected.size()) / columns;
  const auto held = static_cast<std::int64_t>(actual.size()) / rows;
  std::vector<double> all;
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    all.push_back(actual[i / columns * held + i % columns] - expected[i]);
  }
  return all;
}

// Every gradient beside "grad.NAME": by its norm within `tolerance`, and no element off by more
// than `element` of the tensor's largest. Of what is zero but for rounding, within `noise` of
// all gradients.
inline void check_gradients(const SafetensorsFile& file, Rank& rank, double tolerance,
                            double element, double noise = 1e-8) {
  double squares = 0;
  for (const Parameter* parameter : rank.model().parameters()) {
    const double size = norm_of(stored<double>(file, "grad." + parameter->name));
    squares += size * size;
  }
  const double rounding = noise * std::sqrt(squares);
  for (const Parameter* parameter : rank.model().parameters()) {
    const std::vector<double> expected = stored<double>(file, "grad." + parameter->name);
    std::vector<double> difference = on_host(parameter->grad, rank.stream());
    for (std::size_t i = 0; i < difference.size(); ++i) {
      difference[i] -= i < expected.size() ? expected[i] : 0.0;  // padding rows get no gradient
    }
    EXPECT_LE(norm_of(difference), tolerance * norm_of(expected) + rounding) << parameter->name;
    EXPECT_LE(largest_of(difference), element * largest_of(expected) + rounding) << parameter->name;
  }
}

}  // namespace bloomery::testing
