#include <gtest/gtest.h>

#include <cmath>

#include "comm/mesh.h"
#include "comm/threads.h"
#include "harness/op_harness.h"
#include "ops/arithmetic/arithmetic.h"
#include "parallel/head_loss.h"

namespace bloomery::testing {
namespace {

struct Sizes {
  std::int64_t tokens = 1, hidden = 8, teacher_hidden = 12, vocabulary = 37;
  std::int64_t padding = 0;
  std::vector<double> mask;  // empty: none
  double weight = 1, temperature = 1;
  std::int64_t chunk_tokens = 0;
  double grad_scale = 0;  // 0: none
  bool padded_in_softmax = false, biases = false;
  double scale = 1;  // of hidden states
};

std::int64_t columns(const Sizes& sizes) { return sizes.vocabulary + sizes.padding; }

std::vector<Input> inputs(const Sizes& sizes) {
  std::vector<Input> all = {
      {.name = "x", .shape = {sizes.tokens, sizes.hidden}, .deviation = sizes.scale},
      {.name = "weight", .role = Role::parameter, .shape = {columns(sizes), sizes.hidden}},
      {.name = "teacher_x",
       .role = Role::constant,
       .shape = {sizes.tokens, sizes.teacher_hidden},
       .deviation = sizes.scale},
      {.name = "teacher_weight",
       .role = Role::constant,
       .shape = {columns(sizes), sizes.teacher_hidden}},
      {.name = "labels", .role = Role::int32, .shape = {sizes.tokens}, .limit = sizes.vocabulary}};
  if (sizes.biases) {
    all.push_back({.name = "bias", .role = Role::parameter, .shape = {columns(sizes)}});
    all.push_back({.name = "teacher_bias", .role = Role::constant, .shape = {columns(sizes)}});
  }
  if (!sizes.mask.empty()) {
    all.push_back(
        {.name = "loss_mask", .role = Role::real, .shape = {sizes.tokens}, .reals = sizes.mask});
  }
  if (sizes.grad_scale > 0) {
    all.push_back(
        {.name = "grad_scale", .role = Role::real, .shape = {1}, .reals = {sizes.grad_scale}});
  }
  return all;
}

Parameter constant(const Tensor& value) {
  Parameter parameter = make_parameter("teacher", Box::whole(value.shape()), {}, true);
  parameter.value = value;
  return parameter;
}

// With logits = x weight^T + bias and those of the teacher likewise, columns at or past
// `vocabulary` left out (of the cross-entropy only unless padded_in_softmax = 1), T = temperature:
//   distillation = weight T^2 sum(loss_mask * KL(softmax(teacher / T) || softmax(logits / T))) /
//   sum(loss_mask)
//   loss = cross-entropy, as of head_loss, + distillation.
// grad.x, grad.weight and grad.bias are those of grad_scale[0] * loss. The result does not depend
// on chunk_tokens.
OpCase distill_case(const std::string& name, const Sizes& sizes) {
  OpCase result{.name = name, .inputs = inputs(sizes), .seed_outputs = false};
  result.batch = [sizes](Batch& batch, Inputs& in) {
    batch.num_sequences = 1;
    batch.length = sizes.tokens;
    batch.labels = in.tensor("labels");
    batch.loss_mask = sizes.mask.empty() ? Tensor() : in.tensor("loss_mask");
    batch.grad_scale = sizes.grad_scale > 0 ? in.tensor("grad_scale") : Tensor();
  };
  result.forward = [sizes](Context& context, Inputs& in) -> Outputs {
    const Parameter weight = constant(in.tensor("teacher_weight"));
    const Parameter bias = sizes.biases ? constant(in.tensor("teacher_bias")) : Parameter();
    const Distillation distillation{
        .teacher = {in.tensor("teacher_x"), &weight, sizes.biases ? &bias : nullptr},
        .weight = sizes.weight,
        .temperature = sizes.temperature};
    const HeadLoss head = head_loss(context, in.value("x"), in.parameter("weight"),
                                    {.vocabulary = sizes.vocabulary,
                                     .padded_in_softmax = sizes.padded_in_softmax,
                                     .chunk_tokens = sizes.chunk_tokens},
                                    sizes.biases ? &in.parameter("bias") : nullptr, &distillation);
    launch(context.stream, ScaleAdd{.x = head.distillation, .y = head.loss.data, .add = true});
    return {{"loss", head.loss}, {"distillation", {head.distillation, nullptr}}};
  };
  result.attributes = {{"vocabulary", concat(sizes.vocabulary)},
                       {"padded_in_softmax", sizes.padded_in_softmax ? "1" : "0"},
                       {"weight", concat(sizes.weight)},
                       {"temperature", concat(sizes.temperature)}};
  result.finite_differences = sizes.grad_scale == 0;
  // Logits of 16 bits are rounded before the softmax.
  result.tolerance = {{DType::bf16, 3e-2}, {DType::fp16, 4e-3}};
  return result;
}

std::vector<double> mask_with_zeros(std::int64_t tokens) {
  std::vector<double> mask;
  for (std::int64_t t = 0; t < tokens; ++t) {
    mask.push_back(t % 3 == 1 ? 0.0 : t % 5 == 2 ? 0.5 : 1.0);
  }
  return mask;
}

std::vector<OpCase> distill_cases() {
  return {
      distill_case("plain", {.tokens = 7}),
      distill_case("warm", {.tokens = 19, .weight = 0.5, .temperature = 2.5}),
      distill_case("cold", {.tokens = 9, .temperature = 0.5}),
      distill_case("masked,padded",
                   {.tokens = 20, .padding = 27, .mask = mask_with_zeros(20), .temperature = 2}),
      distill_case("padded_in_softmax", {.tokens = 20, .padding = 27, .padded_in_softmax = true}),
      distill_case("all_masked", {.tokens = 6, .mask = std::vector<double>(6, 0.0)}),
      distill_case("chunks,biases", {.tokens = 61,
                                     .vocabulary = 130,
                                     .padding = 6,
                                     .mask = mask_with_zeros(61),
                                     .temperature = 3,
                                     .chunk_tokens = 16,
                                     .grad_scale = 8,
                                     .biases = true}),
      distill_case("extreme", {.tokens = 8, .scale = 12}),
      distill_case("vocabulary=5003",
                   {.tokens = 12, .vocabulary = 5003, .padding = 117, .temperature = 1.5}),
  };
}

const bool kRegistered = register_op_tests("distill_loss", distill_cases());

TEST(Distillation, OfATeacherThatIsTheStudentAddsNothing) {
  Device device({.num_threads = 2, .poison = true});
  Stream stream(device);
  Mesh mesh = Mesh::single();
  Batch batch;
  batch.labels = Tensor::from_host<std::int32_t>(stream, {4, 0}, {2});
  Parameter weight =
      make_parameter("head", Box::whole({5, 3}), {.kind = Init::Kind::normal, .scale = 1}, true);
  weight.value = Tensor::zeros(stream, DType::fp32, {5, 3});
  initialize(weight, 1, stream);
  const Value x{Tensor::from_host<float>(stream, {1, 2, 3, -1, 0, 1}, {2, 3}), nullptr};
  const auto gradients = [&](const Distillation* distillation) {
    Tape tape(stream);
    Context context{.stream = stream, .mesh = mesh, .batch = batch, .tape = &tape};
    weight.grad = Tensor::empty(stream, DType::fp32, {5, 3});
    weight.grad_written = false;
    const HeadLoss head =
        head_loss(context, tape.value(x.data), weight, {.vocabulary = 5}, nullptr, distillation);
    if (distillation != nullptr) {
      EXPECT_EQ(head.distillation.to_host<float>(stream)[0], 0.0f);
    } else {
      EXPECT_FALSE(head.distillation);
    }
    tape.backward();
    const auto grad = weight.grad.to_host<float>(stream);
    return std::vector<double>(grad.begin(), grad.end());
  };
  const Distillation itself{.teacher = {x.data, &weight, nullptr}, .weight = 7, .temperature = 3};
  EXPECT_LE(relative_error(gradients(&itself), gradients(nullptr)), 1e-6);
}

// Loss and gradients of a student and a teacher whose 37 tokens are spread over ranks that hold
// `columns` each, padding left out.
Results split_vocabulary(int num_ranks, std::int64_t columns) {
  constexpr std::int64_t kTokens = 11, kHidden = 8, kTeacherHidden = 5, kVocabulary = 37;
  std::vector<Results> results(static_cast<std::size_t>(num_ranks));
  run_ranks(num_ranks, [&](int rank, std::unique_ptr<Communicator> world) {
    Device device({.num_threads = 1, .poison = true});
    Stream stream(device);
    Mesh mesh({.tensor = num_ranks}, std::move(world));
    Tape tape(stream);
    const auto random = [&](std::uint64_t key, std::int64_t rows, std::int64_t width,
                            std::int64_t first_row) {
      std::vector<double> numbers;
      for (std::int64_t i = first_row * width; i < (first_row + rows) * width; ++i) {
        numbers.push_back(random_normal(key, static_cast<std::uint64_t>(i)));
      }
      return Tensor::from_host(stream, numbers, {rows, width});
    };
    Batch batch;
    std::vector<std::int32_t> labels;
    std::vector<float> mask;
    for (int t = 0; t < kTokens; ++t) {
      labels.push_back((t * 7 + 3) % kVocabulary);
      mask.push_back(t % 4 == 1 ? 0.0f : 1.0f);
    }
    batch.labels = Tensor::from_host(stream, labels, {kTokens});
    batch.loss_mask = Tensor::from_host(stream, mask, {kTokens});
    Parameter weight = make_parameter("head", Box::whole({columns, kHidden}), {}, true);
    weight.value = random(2, columns, kHidden, rank * columns);
    weight.grad = Tensor::empty(stream, DType::fp64, {columns, kHidden});
    const Parameter of_teacher = constant(random(3, columns, kTeacherHidden, rank * columns));
    const Distillation distillation{
        .teacher = {random(4, kTokens, kTeacherHidden, 0), &of_teacher, nullptr},
        .weight = 0.7,
        .temperature = 2};
    Context context{.stream = stream, .mesh = mesh, .batch = batch, .tape = &tape};
    const Value x = tape.value(random(1, kTokens, kHidden, 0));
    const HeadLoss head =
        head_loss(context, x, weight,
                  {.vocabulary = kVocabulary, .first_token = rank * columns, .chunk_tokens = 4},
                  nullptr, &distillation);
    tape.backward();
    results[rank] = {{"distillation", head.distillation.to_host<double>(stream)},
                     {"grad.x", x.slot->grad.to_host<double>(stream)},
                     {"grad.weight", weight.grad.to_host<double>(stream)}};
  });
  Results whole = results[0];
  for (int rank = 1; rank < num_ranks; ++rank) {
    EXPECT_EQ(results[rank]["distillation"], whole["distillation"]) << rank;
    EXPECT_EQ(results[rank]["grad.x"], whole["grad.x"]) << rank;
    const std::vector<double>& part = results[rank]["grad.weight"];
    whole["grad.weight"].insert(whole["grad.weight"].end(), part.begin(), part.end());
  }
  whole["grad.weight"].resize(kVocabulary * kHidden);
  return whole;
}

TEST(Distillation, EqualsOneRankWhenTheVocabularyIsSplit) {
  const Results one = split_vocabulary(1, 37);
  EXPECT_GT(one.at("distillation")[0], 0.1);
  // The last of four ranks holds nothing but padding.
  for (const auto& [num_ranks, columns] : {std::pair{1, 64}, {2, 19}, {3, 14}, {4, 16}}) {
    const Results split = split_vocabulary(num_ranks, columns);
    for (const auto& [tensor, values] : one) {
      EXPECT_LE(relative_error(split.at(tensor), values), 1e-13)
          << num_ranks << " ranks, " << tensor;
    }
  }
}

}  // namespace
}  // namespace bloomery::testing
