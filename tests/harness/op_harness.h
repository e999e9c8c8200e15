// One case list per op gives all its tests: gradients of the fp64 oracle against finite
// differences; every dtype on every device against the oracle, with poisoned memory; adding into
// gradients that exist; the same bits twice and with another number of threads; and a time.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "autograd/context.h"

namespace bloomery::testing {

enum class Role {
  value,      // differentiable activation, in the case's dtype
  parameter,  // differentiable parameter, its gradient in the accumulation dtype
  constant,   // not differentiated, in the case's dtype
  real,       // not differentiated, always fp32
  int32,      // uniform in [0, limit), or `integers`
  int64,
};

struct Input {
  std::string name;
  Role role = Role::value;
  Shape shape;
  double mean = 0, deviation = 1;      // of the normal distribution it is drawn from
  std::int64_t limit = 1;              // of integers
  std::vector<std::int64_t> integers;  // given instead of drawn
  std::vector<double> reals;           // given instead of drawn
};

// The inputs of a case on a device.
class Inputs {
 public:
  const Value& value(const std::string& name) const { return values.at(name); }
  Parameter& parameter(const std::string& name) { return parameters.at(name); }
  const Tensor& tensor(const std::string& name) const { return tensors.at(name); }

  std::map<std::string, Value> values;
  std::map<std::string, Parameter> parameters;
  std::map<std::string, Tensor> tensors;  // of roles constant, real, int32, int64
  DType dtype = DType::fp32;
};

using Outputs = std::vector<std::pair<std::string, Value>>;

struct OpCase {
  std::string name;  // unique within the op, e.g. "rows=7,columns=129"
  std::vector<Input> inputs;
  std::function<Outputs(Context&, Inputs&)> forward;
  std::map<std::string, std::string> attributes;  // for the PyTorch script, see tools/golden
  std::function<void(Batch&, Inputs&)> batch;     // fills what the op reads from Batch
  // Names a further implementation of a case on the CPU, which `forward` selects: the same inputs
  // and tolerances as the case without, but tests of its own.
  std::string cpu_variant;
  bool training = true;
  bool seed_outputs = true;  // false: the op makes the gradients of its output "loss" itself
  bool finite_differences = true;
  std::vector<DType> dtypes = {DType::fp32, DType::bf16, DType::fp16};
  // Written tolerance on |a-b| / |b| where PyTorch has no such op. Default: by dtype.
  std::map<DType, double> tolerance;
};

// All outputs and gradients of one run, in fp64, by name: "y", "grad.x", ...
using Results = std::map<std::string, std::vector<double>>;

struct RunOptions {
  DeviceKind device = DeviceKind::cpu;
  DType dtype = DType::fp64;       // in which the op computes
  DType rounded_to = DType::fp64;  // to which inputs and output gradients are rounded first
  int num_threads = 2;
  bool add = false;       // gradients exist already and the op adds to them
  std::string export_to;  // write inputs, output gradients and results to this file
  std::string nudged;     // finite differences: this input moves by nudge * direction
  double nudge = 0;
};
Results run_case(const std::string& op, const OpCase& op_case, const RunOptions& options);

// |a-b| / |b|, or |a| when b is zero, by norm. One wrong element among many hardly shows in that:
// so it is at least an eighth of the largest |a-b| of an element beside the largest |b|. NaN never
// passes.
double relative_error(const std::vector<double>& a, const std::vector<double>& b);

// Registers GoogleTest tests "op/case.check". Returns true, so that a namespace-scope constant
// can call it.
bool register_op_tests(const std::string& op, const std::vector<OpCase>& cases);

// Writes every registered case, computed in fp64, to FOLDER/<op>~<case>.safetensors for
// tools/golden/op_errors.py: tensors in.NAME, seed.NAME (gradient of an output) and the results.
void export_cases(const std::string& folder);

}  // namespace bloomery::testing
