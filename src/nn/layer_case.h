// A layer on the CPU in fp64 beside a plain formula: its output is the formula's, its gradients are
// the formula's slopes.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "autograd/features.h"
#include "autograd/metrics.h"
#include "comm/mesh.h"
#include "nn/model_options.h"

namespace bloomery::testing {

using Numbers = std::vector<double>;
using NamedNumbers = std::map<std::string, Numbers>;

class LayerCase {
 public:
  Device device{{.num_threads = 2, .poison = true}};
  Stream stream{device};
  Mesh mesh{{}, make_self_communicator()};
  Batch batch;
  Features features;
  Metrics metrics;
  bool training = false;
  bool learns = true;  // else there is no tape, and the output alone is compared

  Tensor int32(const std::vector<std::int32_t>& values) {
    return Tensor::from_host(stream, values, {std::ssize(values)});
  }
  Tensor int64(const std::vector<std::int64_t>& values) {
    return Tensor::from_host(stream, values, {std::ssize(values)});
  }
  Context context(Tape* tape) {
    return {.stream = stream,
            .mesh = mesh,
            .batch = batch,
            .features = features,
            .tape = tape,
            .training = training,
            .metrics = &metrics};
  }
  // Normally distributed, another draw for each name.
  Numbers draw(const std::string& name, const Shape& shape) const {
    Numbers values(static_cast<std::size_t>(shape.numel()));
    const RandomKey key = random_key(11, name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = random_normal(key, i);
    }
    return values;
  }

  // Takes the values of the inputs, which have these shapes. Where the result is empty, it is the
  // first loss that was reported.
  using Layer = std::function<std::vector<Value>(Context&, const std::map<std::string, Value>&)>;
  // Of the numbers of inputs and parameters; the results one after another.
  using Formula = std::function<Numbers(const NamedNumbers&)>;
  void expect(const std::map<std::string, Shape>& inputs, const ParameterList& parameters,
              const Layer& layer, const Formula& formula);

 private:
  Numbers results(const std::vector<Value>& outputs);
  void seed(Tape& tape, const std::vector<Value>& outputs, const Numbers& weights);
  void check_slope(const std::string& name, const Numbers& gradient, NamedNumbers numbers,
                   const Numbers& weights, const Formula& formula);
};

// Plain arithmetic of rows.

inline std::size_t as_size(std::int64_t count) { return static_cast<std::size_t>(count); }

// y = x W^T + b for rows of x; without `b` where it is null.
inline Numbers plain_linear(const Numbers& x, const Numbers& w, const Numbers* b,
                            std::size_t columns) {
  const std::size_t outs = w.size() / columns;
  Numbers y;
  for (std::size_t row = 0; row < x.size() / columns; ++row) {
    for (std::size_t out = 0; out < outs; ++out) {
      double sum = b != nullptr ? (*b)[out] : 0;
      for (std::size_t i = 0; i < columns; ++i) {
        sum += x[row * columns + i] * w[out * columns + i];
      }
      y.push_back(sum);
    }
  }
  return y;
}

inline void plain_softmax(std::vector<double>& scores) {
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score);
  for (double& score : scores) score /= sum;
}

// With `bias` null: by the root mean square alone.
inline Numbers plain_norm(const Numbers& x, const Numbers& gain, const Numbers* bias,
                          double epsilon) {
  const std::size_t columns = gain.size();
  Numbers y = x;
  for (std::size_t row = 0; row < x.size(); row += columns) {
    double mean = 0, square = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      mean += bias != nullptr ? x[row + i] / static_cast<double>(columns) : 0;
    }
    for (std::size_t i = 0; i < columns; ++i) {
      square += (x[row + i] - mean) * (x[row + i] - mean) / static_cast<double>(columns);
    }
    for (std::size_t i = 0; i < columns; ++i) {
      y[row + i] = (x[row + i] - mean) / std::sqrt(square + epsilon) * gain[i] +
                   (bias != nullptr ? (*bias)[i] : 0);
    }
  }
  return y;
}

}  // namespace bloomery::testing
