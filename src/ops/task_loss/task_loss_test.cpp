#include "ops/task_loss/task_loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "comm/mesh.h"
#include "harness/op_harness.h"

namespace bloomery::testing {
namespace {

struct Sizes {
  std::int64_t samples, columns;
  bool weights = false;
  double grad_scale = 0;  // 0: none
};

std::vector<double> some_weights(std::int64_t count) {
  std::vector<double> weights;
  for (std::int64_t i = 0; i < count; ++i) {
    weights.push_back(i % 3 == 0 ? 0 : 1.5);
  }
  return weights;
}

// loss = mean over samples of sample_weights[i] (logsumexp(x[i]) - x[i][classes[i]]), or of
// sample_weights[i] (x[i] - scores[i])^2; grad.x is that of grad_scale[0] * loss.
OpCase loss_case(const Sizes& s, bool of_classes) {
  OpCase result{.name = concat("samples=", s.samples, ",columns=", s.columns,
                               ",weights=", s.weights, ",grad_scale=", s.grad_scale),
                .seed_outputs = false};
  result.inputs = {
      {.name = "x", .shape = {s.samples, s.columns}},
      of_classes
          ? Input{.name = "classes", .role = Role::int32, .shape = {s.samples}, .limit = s.columns}
          : Input{.name = "scores",
                  .role = Role::real,
                  .shape = {s.samples},
                  .reals = some_weights(s.samples)}};
  if (s.weights) {
    result.inputs.push_back({.name = "sample_weights",
                             .role = Role::real,
                             .shape = {s.samples},
                             .reals = some_weights(s.samples)});
  }
  if (s.grad_scale > 0) {
    result.inputs.push_back(
        {.name = "grad_scale", .role = Role::real, .shape = {1}, .reals = {s.grad_scale}});
  }
  result.batch = [s, of_classes](Batch& batch, Inputs& in) {
    batch.num_sequences = s.samples;
    batch.length = 1;
    (of_classes ? batch.classes : batch.scores) = in.tensor(of_classes ? "classes" : "scores");
    batch.sample_weights = s.weights ? in.tensor("sample_weights") : Tensor();
    batch.grad_scale = s.grad_scale > 0 ? in.tensor("grad_scale") : Tensor();
  };
  result.forward = [of_classes](Context& context, Inputs& in) -> Outputs {
    const TaskLoss found =
        of_classes ? class_loss(context, in.value("x")) : squared_loss(context, in.value("x"));
    return {{"loss", {found.loss, nullptr}}};
  };
  result.finite_differences = s.grad_scale == 0;
  result.tolerance = {{DType::fp32, 1e-6}, {DType::bf16, 8e-3}, {DType::fp16, 1e-3}};
  return result;
}

const bool kRegistered =
    register_op_tests("class_loss",
                      {loss_case({1, 2}, true), loss_case({7, 3, true}, true),
                       loss_case({32, 4, false, 1024}, true), loss_case({300, 2}, true)}) &&
    register_op_tests("squared_loss", {loss_case({1, 1}, false), loss_case({7, 1, true}, false),
                                       loss_case({300, 1, false, 1024}, false)});

// Four sequences are two samples of two choices.
TEST(ClassLoss, OfChoicesIsOverTheSequencesOfASample) {
  Device device({.num_threads = 1, .poison = true});
  Stream stream(device);
  Mesh mesh = Mesh::single();
  Batch batch;
  batch.num_sequences = 4;
  batch.length = 1;
  batch.classes = Tensor::from_host<std::int32_t>(stream, {1, 0}, {2});
  Context context{.stream = stream, .mesh = mesh, .batch = batch};
  const Value x{Tensor::from_host<float>(stream, {0, 1, 3, 5}, {4, 1}), nullptr};
  const TaskLoss found = class_loss(context, x);
  const double expected = (std::log(1 + std::exp(-1.0)) + std::log(1 + std::exp(2.0))) / 2;
  EXPECT_NEAR(found.loss.to_host<float>(stream)[0], expected, 1e-6);
  EXPECT_EQ(found.outputs.shape(), (Shape{2, 2}));
  EXPECT_EQ(found.outputs.to_host<float>(stream), (std::vector<float>{0, 1, 3, 5}));
  EXPECT_EQ(x.data.to_host<float>(stream), (std::vector<float>{0, 1, 3, 5})) << "x stays";
}

TEST(TaskLoss, NeedsTheTruth) {
  Device device({.num_threads = 1, .poison = true});
  Stream stream(device);
  Mesh mesh = Mesh::single();
  Batch batch;
  Context context{.stream = stream, .mesh = mesh, .batch = batch};
  const Value x{Tensor::from_host<float>(stream, {0, 1, 3}, {3, 1}), nullptr};
  EXPECT_THROW(class_loss(context, x), Error);
  batch.classes = Tensor::from_host<std::int32_t>(stream, {1, 0}, {2});
  EXPECT_THROW(class_loss(context, x), Error);
  batch.scores = Tensor::from_host<float>(stream, {1}, {1});
  EXPECT_THROW(squared_loss(context, x), Error);
}

}  // namespace
}  // namespace bloomery::testing
