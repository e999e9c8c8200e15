#include "harness/op_harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <numeric>

#include "build_config.h"
#include "comm/mesh.h"
#include "harness/golden_errors.h"
#include "tensor/safetensors.h"

namespace bloomery::testing {
namespace {

double rounded(double x, DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return static_cast<float>(x);
    case DType::bf16:
      return static_cast<float>(bfloat16(static_cast<float>(x)));
    case DType::fp16:
      return static_cast<float>(float16(static_cast<float>(x)));
    default:
      return x;
  }
}

Tensor upload(Stream& stream, DType dtype, const Shape& shape, const std::vector<double>& values) {
  return dispatch_floating(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> cast(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_same_v<T, double>) {
        cast[i] = values[i];
      } else {
        cast[i] = T(static_cast<float>(values[i]));
      }
    }
    return Tensor::from_host(stream, cast, shape);
  });
}

std::vector<double> download(Stream& stream, const Tensor& tensor) {
  return dispatch_floating(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<double> values;
    for (const T x : tensor.to_host<T>(stream)) {
      if constexpr (std::is_same_v<T, double>) {
        values.push_back(x);
      } else {
        values.push_back(static_cast<float>(x));
      }
    }
    return values;
  });
}

// Contents of a floating-point input: drawn from (op, case, input), rounded, and moved along a
// random direction when finite differences ask for it.
std::vector<double> contents(const std::string& stem, const Input& input, const RunOptions& run) {
  const RandomKey key = random_key(1, stem + "/" + input.name);
  const RandomKey direction = random_key(2, stem + "/" + input.name);
  std::vector<double> values(static_cast<std::size_t>(input.shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double drawn = input.reals.empty() ? input.mean + input.deviation * random_normal(key, i)
                                             : input.reals.at(i);
    values[i] = rounded(drawn, run.rounded_to);
    if (run.nudged == input.name) {
      values[i] += run.nudge * random_normal(direction, i);
    }
  }
  return values;
}

template <class T>
std::vector<T> integer_contents(const std::string& stem, const Input& input) {
  const RandomKey key = random_key(1, stem + "/" + input.name);
  std::vector<T> values(static_cast<std::size_t>(input.shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<T>(
        input.integers.empty()
            ? static_cast<std::int64_t>(random_uniform(key, i) * static_cast<double>(input.limit))
            : input.integers.at(i));
  }
  return values;
}

// What is in a gradient before the op adds to it: drawn, exactly representable in every dtype.
std::vector<double> earlier_gradient(const std::string& name, std::int64_t count) {
  const RandomKey key = random_key(3, name);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::floor(random_uniform(key, i) * 16.0 - 8.0) / 4.0;
  }
  return values;
}

Inputs make_inputs(const std::string& stem, const OpCase& op_case, const RunOptions& run,
                   Stream& stream, const Tape& tape) {
  Inputs inputs;
  inputs.dtype = run.dtype;
  for (const Input& input : op_case.inputs) {
    switch (input.role) {
      case Role::value:
        inputs.values[input.name] =
            tape.value(upload(stream, run.dtype, input.shape, contents(stem, input, run)));
        if (run.add) {
          inputs.values[input.name].slot->grad = upload(
              stream, run.dtype, input.shape, earlier_gradient(input.name, input.shape.numel()));
        }
        break;
      case Role::parameter: {
        Parameter parameter = make_parameter(input.name, Box::whole(input.shape), {}, true);
        parameter.value = upload(stream, run.dtype, input.shape, contents(stem, input, run));
        const DType grad_dtype = accumulation_dtype(run.dtype);
        parameter.grad = run.add ? upload(stream, grad_dtype, input.shape,
                                          earlier_gradient(input.name, input.shape.numel()))
                                 : Tensor::empty(stream, grad_dtype, input.shape);
        parameter.grad_written = run.add;
        inputs.parameters[input.name] = parameter;
        break;
      }
      case Role::constant:
        inputs.tensors[input.name] =
            upload(stream, run.dtype, input.shape, contents(stem, input, run));
        break;
      case Role::real:
        inputs.tensors[input.name] =
            upload(stream, DType::fp32, input.shape, contents(stem, input, run));
        break;
      case Role::int32:
        inputs.tensors[input.name] =
            Tensor::from_host(stream, integer_contents<std::int32_t>(stem, input), input.shape);
        break;
      case Role::int64:
        inputs.tensors[input.name] =
            Tensor::from_host(stream, integer_contents<std::int64_t>(stem, input), input.shape);
        break;
    }
  }
  return inputs;
}

const char* device_name(DeviceKind kind) { return kind == DeviceKind::cuda ? "cuda" : "cpu"; }

double default_tolerance(DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return 1e-5;
    case DType::bf16:
      return 1e-2;
    case DType::fp16:
      return 2e-3;
    default:
      return 1e-11;
  }
}

// One unit in the last place, relative: what adding into a gradient may cost.
double epsilon(DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return 1.2e-7;
    case DType::bf16:
      return 7.9e-3;
    case DType::fp16:
      return 9.8e-4;
    default:
      return 2.3e-16;
  }
}

double norm(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

// On few numbers PyTorch is sometimes exact by luck: there, one more rounding is allowed.
double limit_beside(double torch, std::size_t count) {
  constexpr std::size_t kFew = 512;
  return 1.5 * torch + (count < kFew ? epsilon(DType::fp32) : 0.0);
}

double written_tolerance(const std::string& stem, const OpCase& op_case, DType dtype) {
  const auto given = op_case.tolerance.find(dtype);
  if (given != op_case.tolerance.end()) {
    return given->second;
  }
  EXPECT_FALSE(has_golden_errors(stem))
      << stem << " has neither PyTorch's error in tests/golden/op_errors.txt (tools/golden/"
      << "op_errors.py writes it) nor a tolerance of its own in " << dtype;
  return default_tolerance(dtype);
}

void compare(const std::string& stem, const OpCase& op_case, const RunOptions& run,
             const Results& actual, const Results& oracle) {
  ASSERT_EQ(actual.size(), oracle.size());
  for (auto [name, expected] : oracle) {
    const double size_before = norm(expected);
    if (run.add && name.rfind("grad.", 0) == 0) {
      const std::vector<double> earlier =
          earlier_gradient(name.substr(5), static_cast<std::int64_t>(expected.size()));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] += earlier[i];
      }
    }
    const double error = relative_error(actual.at(name), expected);
    const double torch = golden_error(stem, run.dtype, name);
    double limit = torch >= 0 ? limit_beside(torch, expected.size())
                              : written_tolerance(stem, op_case, run.dtype);
    if (run.add) {  // a gradient's error weighs more in a smaller sum, which is rounded once more
      const double size = norm(expected);
      limit = limit * (size > 0 ? std::max(1.0, size_before / size) : 1.0) + epsilon(run.dtype);
    }
    EXPECT_LE(error, limit) << stem << " " << run.dtype << " " << device_name(run.device) << " "
                            << name << (torch >= 0 ? ": PyTorch's error is " : "")
                            << (torch >= 0 ? concat(torch) : std::string());
  }
}

void check_accuracy(const std::string& op, const OpCase& op_case, DeviceKind device, DType dtype) {
  const std::string stem = op + "/" + op_case.name;
  const Results oracle = run_case(op, op_case, {.dtype = DType::fp64, .rounded_to = dtype});
  RunOptions run{.device = device, .dtype = dtype, .rounded_to = dtype};
  const auto start = std::chrono::steady_clock::now();
  const Results first = run_case(op, op_case, run);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  compare(stem, op_case, run, first, oracle);
  run.num_threads = 3;
  EXPECT_TRUE(first == run_case(op, op_case, run))
      << stem << ": two runs, or 2 and 3 threads, differ in their bits";
  run.add = true;
  compare(stem, op_case, run, run_case(op, op_case, run), oracle);
  if (std::getenv("BLOOMERY_TIMING") != nullptr) {
    std::cout << stem << ' ' << device_name(device) << ' ' << dtype << ' ' << elapsed.count() * 1e6
              << " us\n";
  }
}

double inner(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

// Sum over outputs of <output, its seeded gradient>. An op that makes its own gradients makes those
// of its output "loss".
double objective(const std::string& stem, const OpCase& op_case, const Results& results) {
  if (!op_case.seed_outputs) {
    return results.at("loss").at(0);
  }
  double sum = 0;
  for (const auto& [name, values] : results) {
    if (name.rfind("grad.", 0) != 0) {
      const RandomKey key = random_key(4, stem + "/" + name);
      for (std::size_t i = 0; i < values.size(); ++i) {
        sum += values[i] * random_normal(key, i);
      }
    }
  }
  return sum;
}

void check_gradients(const std::string& op, const OpCase& op_case) {
  const std::string stem = op + "/" + op_case.name;
  const Results results = run_case(op, op_case, {});
  for (const Input& input : op_case.inputs) {
    if (input.role != Role::value && input.role != Role::parameter) {
      continue;
    }
    const RandomKey key = random_key(2, stem + "/" + input.name);
    std::vector<double> direction(static_cast<std::size_t>(input.shape.numel()));
    for (std::size_t i = 0; i < direction.size(); ++i) {
      direction[i] = random_normal(key, i);
    }
    const auto moved = [&](double nudge) {
      return objective(stem, op_case,
                       run_case(op, op_case, {.nudged = input.name, .nudge = nudge}));
    };
    constexpr double kStep = 1e-4;
    // Fourth-order central difference.
    const double numeric =
        (8 * (moved(kStep) - moved(-kStep)) - (moved(2 * kStep) - moved(-2 * kStep))) /
        (12 * kStep);
    const double analytic = inner(results.at("grad." + input.name), direction);
    const double size =
        std::sqrt(inner(results.at("grad." + input.name), results.at("grad." + input.name)) *
                  inner(direction, direction));
    EXPECT_NEAR(analytic, numeric, 1e-7 * size + 1e-8) << stem << " gradient of " << input.name;
  }
}

// Everything another program needs to repeat a run, and what came out.
void write_run(const std::string& path, const OpCase& op_case, Stream& stream, const Inputs& inputs,
               const std::map<std::string, Tensor>& seeds, const Results& results) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const Input& input : op_case.inputs) {
    tensors.emplace_back("in." + input.name,
                         input.role == Role::value       ? inputs.values.at(input.name).data
                         : input.role == Role::parameter ? inputs.parameters.at(input.name).value
                                                         : inputs.tensors.at(input.name));
  }
  for (const auto& [name, seed] : seeds) {
    tensors.emplace_back("seed." + name, seed);
  }
  for (const auto& [name, values] : results) {
    tensors.emplace_back(
        name, Tensor::from_host(stream, values, {static_cast<std::int64_t>(values.size())}));
  }
  Metadata metadata(op_case.attributes.begin(), op_case.attributes.end());
  std::string dtypes, parameters;
  for (const DType dtype : op_case.dtypes) {
    dtypes += concat(dtypes.empty() ? "" : " ", dtype);
  }
  for (const auto& [name, parameter] : inputs.parameters) {
    parameters += (parameters.empty() ? "" : " ") + name;
  }
  metadata["dtypes"] = dtypes;
  metadata["parameters"] = parameters;
  write_safetensors(path, stream, tensors, metadata);
}

class OpTest : public ::testing::Test {
 public:
  explicit OpTest(std::function<void()> body) : body_(std::move(body)) {}
  void TestBody() override { body_(); }

 private:
  std::function<void()> body_;
};

void register_test(const std::string& op, const std::string& name, std::function<void()> body) {
  ::testing::RegisterTest(op.c_str(), name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [body = std::move(body)]() -> OpTest* { return new OpTest(body); });
}

std::map<std::string, std::vector<OpCase>>& cases_by_op() {
  static std::map<std::string, std::vector<OpCase>> cases;
  return cases;
}

}  // namespace

double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double kWorstElement = 8;
  double difference = 0, size = 0, worst = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double apart = a[i] == b[i] ? 0 : std::abs(a[i] - b[i]);  // equal infinities: 0
    if (std::isnan(apart)) return INFINITY;
    difference += apart * apart;
    worst = std::max(worst, apart);
    if (!std::isfinite(b[i])) continue;
    size += b[i] * b[i];
    largest = std::max(largest, std::abs(b[i]));
  }
  const double by_norm = std::sqrt(size > 0 ? difference / size : difference);
  const double by_element = (largest > 0 ? worst / largest : worst) / kWorstElement;
  return std::max(by_norm, by_element);
}

Results run_case(const std::string& op, const OpCase& op_case, const RunOptions& run) {
  const std::string stem = op + "/" + op_case.name;
  Device device({.kind = run.device, .num_threads = run.num_threads, .poison = true});
  Stream stream(device);
  Mesh mesh = Mesh::single();
  Tape tape(stream);
  Inputs inputs = make_inputs(stem, op_case, run, stream, tape);
  Batch batch;
  if (op_case.batch) {
    op_case.batch(batch, inputs);
  }
  Context context{
      .stream = stream, .mesh = mesh, .batch = batch, .tape = &tape, .training = op_case.training};
  Results results;
  std::map<std::string, Tensor> seeds;
  {
    const Outputs outputs = op_case.forward(context, inputs);
    for (const auto& [name, value] : outputs) {
      results[name] = download(stream, value.data);
      if (op_case.seed_outputs) {
        const RandomKey key = random_key(4, stem + "/" + name);
        std::vector<double> seed(static_cast<std::size_t>(value.data.numel()));
        for (std::size_t i = 0; i < seed.size(); ++i) {
          seed[i] = rounded(random_normal(key, i), run.rounded_to);
        }
        Tensor grad = upload(stream, value.dtype(), value.shape(), seed);
        if (!run.export_to.empty()) {
          seeds[name] = upload(stream, value.dtype(), value.shape(), seed);
        }
        tape.set_grad(value.slot, std::move(grad));
      }
    }
    tape.backward();
  }
  for (const auto& [name, value] : inputs.values) {
    check(static_cast<bool>(value.slot->grad), stem, ": no gradient for ", name);
    results["grad." + name] = download(stream, value.slot->grad);
  }
  for (const auto& [name, parameter] : inputs.parameters) {
    check(parameter.grad_written, stem, ": no gradient for ", name);
    results["grad." + name] = download(stream, parameter.grad);
  }
  if (!run.export_to.empty()) {
    Tape fresh(stream);  // ops may change their inputs in place
    write_run(run.export_to, op_case, stream, make_inputs(stem, op_case, run, stream, fresh), seeds,
              results);
  }
  return results;
}

bool register_op_tests(const std::string& op, const std::vector<OpCase>& cases) {
  for (const OpCase& op_case : cases) {
    const bool variant = !op_case.cpu_variant.empty();
    if (!variant) {
      cases_by_op()[op].push_back(op_case);
    }
    if (op_case.finite_differences && !variant) {
      register_test(op, op_case.name + ".gradients", [=] { check_gradients(op, op_case); });
    }
    for (const DType dtype : op_case.dtypes) {
      register_test(op,
                    concat(op_case.name, ".cpu_", dtype, variant ? "_" : "", op_case.cpu_variant),
                    [=] { check_accuracy(op, op_case, DeviceKind::cpu, dtype); });
      if (build::cuda && !variant) {
        register_test(op, concat(op_case.name, ".cuda_", dtype), [=] {
          if (num_cuda_devices() == 0) {
            GTEST_SKIP() << "no GPU on this machine";
          }
          check_accuracy(op, op_case, DeviceKind::cuda, dtype);
        });
      }
    }
  }
  return true;
}

void export_cases(const std::string& folder) {
  for (const auto& [op, cases] : cases_by_op()) {
    for (const OpCase& op_case : cases) {
      run_case(op, op_case, {.export_to = folder + "/" + op + "~" + op_case.name + ".safetensors"});
    }
  }
}

}  // namespace bloomery::testing
