#include "parallel/head_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "comm/mesh.h"
#include "comm/threads.h"
#include "harness/op_harness.h"

namespace bloomery::testing {
namespace {

struct Sizes {
  std::int64_t tokens = 1, hidden = 1, vocabulary = 1;
  std::int64_t padding = 0;  // columns beyond the vocabulary
  std::vector<double> mask;  // empty: none
  double scale = 1;          // of x and weight
  bool padded_in_softmax = false;
  std::int64_t chunk_tokens = 0;
  double grad_scale = 0;  // 0: none
  bool bias = false;
};

// With logits = x weight^T + bias [tokens, vocabulary + padding], columns at or past `vocabulary`
// left out unless padded_in_softmax = 1:
//   token_losses[t] = logsumexp(logits[t]) - logits[t][labels[t]]
//   loss = sum(loss_mask * token_losses) / sum(loss_mask), 0 when the mask is all zeros; without
//   loss_mask the mean.
// grad.x, grad.weight and grad.bias are those of grad_scale[0] * loss (without that input, of
// loss). The result does not depend on chunk_tokens.
OpCase head_case(const std::string& name, const Sizes& sizes) {
  OpCase result{.name = name, .seed_outputs = false};
  result.inputs = {
      {.name = "x", .shape = {sizes.tokens, sizes.hidden}, .deviation = sizes.scale},
      {.name = "weight",
       .role = Role::parameter,
       .shape = {sizes.vocabulary + sizes.padding, sizes.hidden},
       .deviation = sizes.scale},
      {.name = "labels", .role = Role::int32, .shape = {sizes.tokens}, .limit = sizes.vocabulary}};
  if (sizes.bias) {
    result.inputs.push_back({.name = "bias",
                             .role = Role::parameter,
                             .shape = {sizes.vocabulary + sizes.padding},
                             .deviation = sizes.scale});
  }
  if (!sizes.mask.empty()) {
    result.inputs.push_back(
        {.name = "loss_mask", .role = Role::real, .shape = {sizes.tokens}, .reals = sizes.mask});
  }
  if (sizes.grad_scale > 0) {
    result.inputs.push_back(
        {.name = "grad_scale", .role = Role::real, .shape = {1}, .reals = {sizes.grad_scale}});
  }
  result.batch = [sizes](Batch& batch, Inputs& in) {
    batch.num_sequences = 1;
    batch.length = sizes.tokens;
    batch.labels = in.tensor("labels");
    batch.loss_mask = sizes.mask.empty() ? Tensor() : in.tensor("loss_mask");
    batch.grad_scale = sizes.grad_scale > 0 ? in.tensor("grad_scale") : Tensor();
  };
  result.forward = [sizes](Context& context, Inputs& in) -> Outputs {
    const HeadLoss head = head_loss(context, in.value("x"), in.parameter("weight"),
                                    {.vocabulary = sizes.vocabulary,
                                     .padded_in_softmax = sizes.padded_in_softmax,
                                     .chunk_tokens = sizes.chunk_tokens},
                                    sizes.bias ? &in.parameter("bias") : nullptr);
    return {{"loss", head.loss}, {"token_losses", {head.token_losses, nullptr}}};
  };
  result.attributes = {{"vocabulary", concat(sizes.vocabulary)},
                       {"padded_in_softmax", sizes.padded_in_softmax ? "1" : "0"},
                       {"chunk_tokens", concat(sizes.chunk_tokens)}};
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

const std::vector<std::pair<std::string, Sizes>>& head_sizes() {
  static const std::vector<std::pair<std::string, Sizes>> sizes = {
      {"vocabulary=1", {.tokens = 3, .hidden = 4}},
      {"vocabulary=1,padded", {.tokens = 3, .hidden = 4, .padding = 7}},
      {"vocabulary=5", {.tokens = 7, .hidden = 3, .vocabulary = 5}},
      {"vocabulary=37,masked",
       {.tokens = 19, .hidden = 16, .vocabulary = 37, .mask = mask_with_zeros(19)}},
      {"vocabulary=37,padded",
       {.tokens = 20, .hidden = 16, .vocabulary = 37, .padding = 27, .mask = mask_with_zeros(20)}},
      {"vocabulary=37,padded_in_softmax",
       {.tokens = 20, .hidden = 16, .vocabulary = 37, .padding = 27, .padded_in_softmax = true}},
      {"vocabulary=130", {.tokens = 64, .hidden = 24, .vocabulary = 130}},
      {"vocabulary=130,chunks",
       {.tokens = 61,
        .hidden = 24,
        .vocabulary = 130,
        .padding = 6,
        .mask = mask_with_zeros(61),
        .chunk_tokens = 16}},
      {"vocabulary=130,single_tokens",
       {.tokens = 5, .hidden = 8, .vocabulary = 130, .chunk_tokens = 1}},
      {"vocabulary=37,all_masked",
       {.tokens = 6, .hidden = 8, .vocabulary = 37, .mask = std::vector<double>(6, 0.0)}},
      {"vocabulary=37,grad_scale",
       {.tokens = 9, .hidden = 8, .vocabulary = 37, .mask = mask_with_zeros(9), .grad_scale = 128}},
      {"vocabulary=5,bias", {.tokens = 7, .hidden = 3, .vocabulary = 5, .bias = true}},
      {"vocabulary=130,bias,chunks",
       {.tokens = 61,
        .hidden = 24,
        .vocabulary = 130,
        .padding = 6,
        .mask = mask_with_zeros(61),
        .chunk_tokens = 16,
        .grad_scale = 8,
        .bias = true}},
      {"vocabulary=37,extreme", {.tokens = 8, .hidden = 16, .vocabulary = 37, .scale = 16}},
      {"vocabulary=5003", {.tokens = 4, .hidden = 16, .vocabulary = 5003, .padding = 117}},
  };
  return sizes;
}

std::vector<OpCase> head_cases() {
  std::vector<OpCase> cases;
  for (const auto& [name, sizes] : head_sizes()) {
    cases.push_back(head_case(name, sizes));
  }
  return cases;
}

// logits = x weight^T + bias, columns at or past the attribute "vocabulary" -inf.
std::vector<OpCase> logits_cases() {
  std::vector<OpCase> cases;
  for (const auto& [tokens, vocabulary, columns] :
       {std::tuple{3, 37, 37}, {5, 37, 64}, {2, 5, 7}}) {
    OpCase each{.name = concat("vocabulary=", vocabulary, ",columns=", columns),
                .seed_outputs = false,
                .finite_differences = false};
    each.inputs = {{.name = "x", .role = Role::constant, .shape = {tokens, 16}},
                   {.name = "weight", .role = Role::constant, .shape = {columns, 16}},
                   {.name = "bias", .role = Role::constant, .shape = {columns}}};
    each.forward = [vocabulary](Context& context, Inputs& in) -> Outputs {
      Parameter weight = make_parameter("head", Box::whole(in.tensor("weight").shape()), {}, true);
      weight.value = in.tensor("weight");
      Parameter bias = make_parameter("bias", Box::whole(in.tensor("bias").shape()), {}, true);
      bias.value = in.tensor("bias");
      return {{"logits", head_logits(context, {in.tensor("x"), nullptr}, weight,
                                     {.vocabulary = vocabulary}, &bias)}};
    };
    each.attributes = {{"vocabulary", concat(vocabulary)}};
    cases.push_back(each);
  }
  return cases;
}

const bool kRegistered = register_op_tests("head_loss", head_cases()) &&
                         register_op_tests("head_logits", logits_cases());

// The definition above, one sum after another.
Results definition(const Sizes& sizes, Inputs& in, Stream& stream) {
  const std::int64_t columns = sizes.vocabulary + sizes.padding, hidden = sizes.hidden;
  const std::int64_t valid = sizes.padded_in_softmax ? columns : sizes.vocabulary;
  const auto x = in.value("x").data.to_host<double>(stream);
  const auto w = in.parameter("weight").value.to_host<double>(stream);
  const auto labels = in.tensor("labels").to_host<std::int32_t>(stream);
  const auto mask = sizes.mask.empty() ? std::vector<double>(sizes.tokens, 1.0) : sizes.mask;
  const double scale = sizes.grad_scale > 0 ? sizes.grad_scale : 1.0;
  double mask_sum = 0;
  for (const double m : mask) {
    mask_sum += m;
  }
  Results results{{"loss", {0.0}},
                  {"token_losses", std::vector<double>(sizes.tokens)},
                  {"grad.x", std::vector<double>(x.size())},
                  {"grad.weight", std::vector<double>(w.size())}};
  std::vector<double> bias(static_cast<std::size_t>(columns));
  if (sizes.bias) {
    bias = in.parameter("bias").value.to_host<double>(stream);
    results["grad.bias"].resize(bias.size());
  }
  for (std::int64_t t = 0; t < sizes.tokens; ++t) {
    std::vector<double> logits(bias.begin(), bias.begin() + valid);
    double max = -INFINITY, sum = 0;
    for (std::int64_t c = 0; c < valid; ++c) {
      for (std::int64_t h = 0; h < hidden; ++h) {
        logits[c] += x[t * hidden + h] * w[c * hidden + h];
      }
      max = std::max(max, logits[c]);
    }
    for (const double logit : logits) {
      sum += std::exp(logit - max);
    }
    const double weight = mask_sum > 0 ? mask[t] / mask_sum : 0.0;
    const double loss = max + std::log(sum) - logits[labels[t]];
    results["token_losses"][t] = loss;
    results["loss"][0] += weight * loss;
    for (std::int64_t c = 0; c < valid; ++c) {
      const double grad =
          scale * weight * (std::exp(logits[c] - max) / sum - (c == labels[t] ? 1.0 : 0.0));
      if (sizes.bias) {
        results["grad.bias"][c] += grad;
      }
      for (std::int64_t h = 0; h < hidden; ++h) {
        results["grad.x"][t * hidden + h] += grad * w[c * hidden + h];
        results["grad.weight"][c * hidden + h] += grad * x[t * hidden + h];
      }
    }
  }
  return results;
}

TEST(HeadLoss, EqualsItsDefinition) {
  for (const auto& [name, sizes] : head_sizes()) {
    OpCase watched = head_case(name, sizes);
    Results expected;
    watched.forward = [&expected, &sizes = sizes, forward = watched.forward](Context& context,
                                                                             Inputs& in) {
      expected = definition(sizes, in, context.stream);
      return forward(context, in);
    };
    const Results actual = run_case("head_loss", watched, {});
    ASSERT_EQ(actual.size(), expected.size());
    for (const auto& [tensor, values] : expected) {
      EXPECT_LE(relative_error(actual.at(tensor), values), 1e-12) << name << " " << tensor;
    }
  }
}

TEST(HeadLoss, DoesNotDependOnTheChunks) {
  Sizes sizes{.tokens = 61, .hidden = 24, .vocabulary = 130, .mask = mask_with_zeros(61)};
  const Results whole = run_case("head_loss", head_case("chunked", sizes), {.dtype = DType::fp32});
  for (const std::int64_t chunk : {1, 7, 60, 61, 1000}) {
    sizes.chunk_tokens = chunk;
    const Results parts =
        run_case("head_loss", head_case("chunked", sizes), {.dtype = DType::fp32});
    for (const auto& [tensor, values] : whole) {
      EXPECT_LE(relative_error(parts.at(tensor), values), 5e-7) << chunk << " " << tensor;
    }
  }
}

// Loss and gradients of a head whose 37 tokens are spread over `num_ranks` ranks that hold
// `columns` each. Weight gradients are put together, padding left out; everything else must be the
// same on all ranks.
Results split_head(int num_ranks, std::int64_t columns) {
  constexpr std::int64_t kTokens = 11, kHidden = 8, kVocabulary = 37;
  std::vector<Results> results(static_cast<std::size_t>(num_ranks));
  run_ranks(num_ranks, [&](int rank, std::unique_ptr<Communicator> world) {
    Device device({.num_threads = 1, .poison = true});
    Stream stream(device);
    Mesh mesh({.tensor = num_ranks}, std::move(world));
    Tape tape(stream);
    std::vector<double> x(kTokens * kHidden), w(columns * kHidden), b;
    std::vector<std::int32_t> labels(kTokens);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = random_normal(1, i);
    }
    for (std::size_t i = 0; i < w.size(); ++i) {
      w[i] = random_normal(2, i + static_cast<std::size_t>(rank * columns * kHidden));
    }
    for (std::int64_t c = rank * columns; c < (rank + 1) * columns; ++c) {
      b.push_back(random_normal(3, static_cast<std::uint64_t>(c)));
    }
    for (int t = 0; t < kTokens; ++t) {
      labels[t] = (t * 7 + 3) % kVocabulary;
    }
    Batch batch;
    batch.labels = Tensor::from_host(stream, labels, {kTokens});
    Parameter weight = make_parameter("head", Box::whole({columns, kHidden}), {}, true);
    weight.value = Tensor::from_host(stream, w, {columns, kHidden});
    weight.grad = Tensor::empty(stream, DType::fp64, {columns, kHidden});
    Parameter bias = make_parameter("bias", Box::whole({columns}), {}, true);
    bias.value = Tensor::from_host(stream, b, {columns});
    bias.grad = Tensor::empty(stream, DType::fp64, {columns});
    Context context{.stream = stream, .mesh = mesh, .batch = batch, .tape = &tape};
    const Value input = tape.value(Tensor::from_host(stream, x, {kTokens, kHidden}));
    const HeadLoss head = head_loss(
        context, input, weight,
        {.vocabulary = kVocabulary, .first_token = rank * columns, .chunk_tokens = 4}, &bias);
    tape.backward();
    results[rank] = {{"loss", head.loss.data.to_host<double>(stream)},
                     {"token_losses", head.token_losses.to_host<double>(stream)},
                     {"grad.bias", bias.grad.to_host<double>(stream)},
                     {"grad.x", input.slot->grad.to_host<double>(stream)},
                     {"grad.weight", weight.grad.to_host<double>(stream)}};
  });
  Results whole = results[0];
  for (int rank = 1; rank < num_ranks; ++rank) {
    for (const char* tensor : {"loss", "token_losses", "grad.x"}) {
      EXPECT_EQ(results[rank][tensor], whole[tensor]) << "rank " << rank << " " << tensor;
    }
    for (const char* tensor : {"grad.weight", "grad.bias"}) {
      const std::vector<double>& part = results[rank][tensor];
      whole[tensor].insert(whole[tensor].end(), part.begin(), part.end());
    }
  }
  whole["grad.weight"].resize(kVocabulary * kHidden);
  whole["grad.bias"].resize(kVocabulary);
  return whole;
}

TEST(HeadLoss, EqualsOneRankWhenTheVocabularyIsSplit) {
  const Results one = split_head(1, 37);
  // The last of four ranks holds nothing but padding.
  for (const auto& [num_ranks, columns] : {std::pair{1, 64}, {2, 19}, {3, 14}, {4, 16}}) {
    const Results split = split_head(num_ranks, columns);
    for (const auto& [tensor, values] : one) {
      EXPECT_LE(relative_error(split.at(tensor), values), 1e-13)
          << num_ranks << " ranks, " << tensor;
    }
  }
}

// Loss and gradients of tokens of which each rank of the context axis holds some, by the mask's
// pattern very unequal shares. Losses and weight gradients are summed, the rest put together.
Results cut_sequence(int num_ranks, bool masked) {
  constexpr std::int64_t kTokens = 12, kHidden = 8, kVocabulary = 37;
  const std::int64_t own = kTokens / num_ranks;
  std::vector<Results> results(static_cast<std::size_t>(num_ranks));
  run_ranks(num_ranks, [&](int rank, std::unique_ptr<Communicator> world) {
    Device device({.num_threads = 1, .poison = true});
    Stream stream(device);
    Mesh mesh({.context = num_ranks}, std::move(world));
    Tape tape(stream);
    std::vector<double> x, w;
    std::vector<std::int32_t> labels;
    std::vector<float> mask;
    for (std::int64_t t = rank * own; t < (rank + 1) * own; ++t) {
      for (std::int64_t h = 0; h < kHidden; ++h) {
        x.push_back(random_normal(1, static_cast<std::uint64_t>(t * kHidden + h)));
      }
      labels.push_back(static_cast<std::int32_t>((t * 7 + 3) % kVocabulary));
      mask.push_back(t < 3 ? 0.0f : t < 8 ? 1.0f : 0.5f);
    }
    for (std::uint64_t i = 0; i < kVocabulary * kHidden; ++i) {
      w.push_back(random_normal(2, i));
    }
    Batch batch;
    batch.labels = Tensor::from_host(stream, labels, {own});
    batch.loss_mask = masked ? Tensor::from_host(stream, mask, {own}) : Tensor();
    Parameter weight = make_parameter("head", Box::whole({kVocabulary, kHidden}), {}, true);
    weight.value = Tensor::from_host(stream, w, {kVocabulary, kHidden});
    weight.grad = Tensor::empty(stream, DType::fp64, {kVocabulary, kHidden});
    Context context{.stream = stream, .mesh = mesh, .batch = batch, .tape = &tape};
    const Value input = tape.value(Tensor::from_host(stream, x, {own, kHidden}));
    const HeadLoss head = head_loss(context, input, weight, {.vocabulary = kVocabulary});
    tape.backward();
    results[rank] = {{"loss", head.loss.data.to_host<double>(stream)},
                     {"token_losses", head.token_losses.to_host<double>(stream)},
                     {"grad.x", input.slot->grad.to_host<double>(stream)},
                     {"grad.weight", weight.grad.to_host<double>(stream)}};
  });
  Results whole = results[0];
  for (int rank = 1; rank < num_ranks; ++rank) {
    for (auto& [tensor, values] : whole) {
      const std::vector<double>& part = results[rank][tensor];
      if (tensor == "loss" || tensor == "grad.weight") {
        std::transform(values.begin(), values.end(), part.begin(), values.begin(), std::plus());
      } else {
        values.insert(values.end(), part.begin(), part.end());
      }
    }
  }
  return whole;
}

TEST(HeadLoss, PartsOfASequenceSumToTheWhole) {
  for (const bool masked : {false, true}) {
    const Results one = cut_sequence(1, masked);
    for (const int num_ranks : {2, 3, 4}) {
      const Results parts = cut_sequence(num_ranks, masked);
      for (const auto& [tensor, values] : one) {
        EXPECT_LE(relative_error(parts.at(tensor), values), 1e-13)
            << num_ranks << " ranks, " << tensor;
      }
    }
  }
}

class HeadTest : public ::testing::Test {
 protected:
  HeadTest() {
    weight =
        make_parameter("head", Box::whole({5, 3}), {.kind = Init::Kind::normal, .scale = 1}, true);
    weight.local_shape = {8, 3};
    weight.value = Tensor::zeros(stream, DType::fp32, weight.local_shape);
    weight.grad = Tensor::empty(stream, DType::fp32, weight.local_shape);
    initialize(weight, 1, stream);
    x = {Tensor::from_host<float>(stream, {1, 2, 3, -1, 0, 1}, {2, 3}), nullptr};
    batch.labels = Tensor::from_host<std::int32_t>(stream, {4, 0}, {2});
  }

  Device device{{.num_threads = 2, .poison = true}};
  Stream stream{device};
  Mesh mesh = Mesh::single();
  Batch batch;
  Context context{.stream = stream, .mesh = mesh, .batch = batch};
  Parameter weight;
  Value x;
  const HeadOptions options{.vocabulary = 5};
};

TEST_F(HeadTest, LogitsAgreeWithTheLossAndHidePadding) {
  const auto losses = head_loss(context, x, weight, options).token_losses.to_host<float>(stream);
  const auto logits = head_logits(context, x, weight, options).data.to_host<float>(stream);
  for (int t = 0; t < 2; ++t) {
    double sum = 0;
    for (int c = 0; c < 8; ++c) {
      const double logit = logits[t * 8 + c];
      EXPECT_EQ(std::isinf(logit), c >= 5);
      sum += std::exp(logit);
    }
    EXPECT_NEAR(losses[t], std::log(sum) - logits[t * 8 + (t == 0 ? 4 : 0)], 1e-5);
  }
}

TEST_F(HeadTest, LossWithoutATapeIsTheSame) {
  const auto plain = head_loss(context, x, weight, options).loss.data.to_host<float>(stream);
  Tape tape(stream);
  context.tape = &tape;
  EXPECT_EQ(plain, head_loss(context, x, weight, options).loss.data.to_host<float>(stream));
}

TEST_F(HeadTest, AnnouncesTheWeightInTheBackwardPass) {
  Tape tape(stream);
  context.tape = &tape;
  std::vector<std::string> ready;
  tape.on_contribution = [&](Parameter& parameter) { ready.push_back(parameter.name); };
  const Value input = tape.value(x.data);
  head_loss(context, input, weight, options);
  EXPECT_TRUE(weight.grad_written);
  EXPECT_TRUE(ready.empty());
  EXPECT_FALSE(input.slot->grad);
  tape.backward();
  EXPECT_EQ(ready, std::vector<std::string>{"head"});
  EXPECT_TRUE(input.slot->grad);
}

TEST_F(HeadTest, LabelsOutsideTheVocabularyMustBeMasked) {
  batch.labels = Tensor::from_host<std::int32_t>(stream, {4, -100}, {2});
  EXPECT_THROW(head_loss(context, x, weight, options), Error);
  batch.labels = Tensor::from_host<std::int32_t>(stream, {4, 6}, {2});  // a padding column
  EXPECT_THROW(head_loss(context, x, weight, options), Error);
  batch.loss_mask = Tensor::from_host<float>(stream, {1, 0}, {2});
  const HeadLoss masked = head_loss(context, x, weight, options);
  EXPECT_EQ(masked.loss.data.to_host<float>(stream)[0],
            masked.token_losses.to_host<float>(stream)[0]);
}

TEST_F(HeadTest, RejectsImpossibleCalls) {
  EXPECT_THROW(head_loss(context, x, weight, {}), Error);  // no vocabulary
  const Value wide{Tensor::zeros(stream, DType::fp32, {2, 4}), nullptr};
  EXPECT_THROW(head_loss(context, wide, weight, options), Error);
  batch.labels = Tensor();
  EXPECT_THROW(head_loss(context, x, weight, options), Error);
  context.recomputing = true;
  EXPECT_THROW(head_loss(context, x, weight, options), Error);
}

TEST_F(HeadTest, NoTokensGiveNoLossAndNoGradient) {
  Tape tape(stream);
  context.tape = &tape;
  batch.labels = Tensor::empty(stream, DType::int32, {0});
  const Value none = tape.value(Tensor::empty(stream, DType::fp32, {0, 3}));
  const HeadLoss head = head_loss(context, none, weight, options);
  tape.backward();
  EXPECT_EQ(head.loss.data.to_host<float>(stream)[0], 0.0f);
  EXPECT_EQ(weight.grad.to_host<float>(stream), std::vector<float>(24, 0.0f));
}

}  // namespace
}  // namespace bloomery::testing
