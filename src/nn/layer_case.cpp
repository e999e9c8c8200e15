#include "nn/layer_case.h"

#include <gtest/gtest.h>

#include <numeric>

#include "harness/op_harness.h"

namespace bloomery::testing {

void LayerCase::expect(const std::map<std::string, Shape>& inputs, const ParameterList& parameters,
                       const Layer& layer, const Formula& formula) {
  NamedNumbers numbers;
  Tape tape(stream);
  std::map<std::string, Value> values;
  for (const auto& [name, shape] : inputs) {
    numbers[name] = draw(name, shape);
    values[name] = tape.value(Tensor::from_host(stream, numbers[name], shape));
  }
  for (Parameter* const each : parameters) {
    numbers[each->name] = draw(each->name, each->local_shape);
    each->value = Tensor::from_host(stream, numbers[each->name], each->local_shape);
    each->grad = Tensor::empty(stream, DType::fp64, each->local_shape);
  }
  Context here = context(learns ? &tape : nullptr);
  const std::vector<Value> outputs = layer(here, values);
  const Numbers expected = formula(numbers);
  ASSERT_LE(relative_error(results(outputs), expected), 1e-12);
  if (!learns) {
    return;
  }
  const Numbers weights = outputs.empty() ? Numbers{1} : draw("seed", {std::ssize(expected)});
  seed(tape, outputs, weights);
  tape.backward();
  for (const auto& [name, value] : values) {
    check_slope(name, value.slot->grad.to_host<double>(stream), numbers, weights, formula);
  }
  for (const Parameter* const each : parameters) {
    check_slope(each->name, each->grad.to_host<double>(stream), numbers, weights, formula);
  }
}

Numbers LayerCase::results(const std::vector<Value>& outputs) {
  if (outputs.empty()) {
    return metrics.entries().front().value.to_host<double>(stream);
  }
  Numbers all;
  for (const Value& output : outputs) {
    const Numbers more = output.data.to_host<double>(stream);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

void LayerCase::seed(Tape& tape, const std::vector<Value>& outputs, const Numbers& weights) {
  auto next = weights.begin();
  for (const Value& output : outputs) {
    const auto end = next + output.data.numel();
    tape.set_grad(output.slot, Tensor::from_host(stream, Numbers(next, end), output.shape()));
    next = end;
  }
}

// How the weighted sum of the results changes along a random direction of an input.
void LayerCase::check_slope(const std::string& name, const Numbers& gradient, NamedNumbers numbers,
                            const Numbers& weights, const Formula& formula) {
  constexpr double kStep = 1e-4;
  const Numbers middle = numbers.at(name);
  const Numbers direction = draw("direction of " + name, {std::ssize(middle)});
  const auto weighted = [&](double step) {
    for (std::size_t i = 0; i < middle.size(); ++i) {
      numbers[name][i] = middle[i] + step * direction[i];
    }
    const Numbers moved = formula(numbers);
    return std::inner_product(moved.begin(), moved.end(), weights.begin(), 0.0);
  };
  const double near = weighted(kStep) - weighted(-kStep);
  const double far = weighted(2 * kStep) - weighted(-2 * kStep);
  const double slope = (8 * near - far) / (12 * kStep);
  ASSERT_EQ(gradient.size(), direction.size()) << name;
  const double found = std::inner_product(gradient.begin(), gradient.end(), direction.begin(), 0.0);
  EXPECT_NEAR(found, slope, 1e-7 * (1 + std::abs(slope))) << name;
}

}  // namespace bloomery::testing
