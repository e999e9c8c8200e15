#include "parallel/retrieval_loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "comm/mesh.h"
#include "comm/threads.h"
#include "harness/op_harness.h"

namespace bloomery::testing {
namespace {

struct Sizes {
  std::int64_t queries, width, contexts = 1;  // contexts of a query
  std::int64_t absent = 0;                    // every so many contexts one is missing; 0: none
};

// With scores = scale * queries contexts^T [queries, contexts], of the contexts that are there:
// loss = mean, over queries whose own context is, of logsumexp(scores) - scores[query][own].
OpCase retrieval_case(const Sizes& s, double scale) {
  OpCase result{.name = concat("queries=", s.queries, ",width=", s.width, ",contexts=", s.contexts,
                               ",absent=", s.absent, ",scale=", scale),
                .seed_outputs = false};
  result.inputs = {{.name = "queries", .shape = {s.queries, s.width}},
                   {.name = "contexts", .shape = {s.queries * s.contexts, s.width}}};
  result.batch = [s](Batch& batch, Inputs&) {
    batch.num_sequences = s.queries;
    batch.length = 1;
  };
  result.forward = [s, scale](Context& context, Inputs& in) -> Outputs {
    Tensor present;
    if (s.absent > 0) {
      std::vector<float> there(static_cast<std::size_t>(s.queries * s.contexts), 1);
      for (std::size_t i = 1; i < there.size(); i += static_cast<std::size_t>(s.absent)) {
        there[i] = 0;
      }
      present = Tensor::from_host(context.stream, there, {std::ssize(there)});
    }
    const RetrievalLoss found =
        retrieval_loss(context, in.value("queries"), in.value("contexts"), present, scale);
    return {{"loss", {found.loss, nullptr}}};
  };
  result.attributes = {{"scale", concat(scale)}};
  result.tolerance = {{DType::fp32, 1e-5}, {DType::bf16, 8e-3}, {DType::fp16, 1e-3}};
  return result;
}

const bool kRegistered = register_op_tests(
    "retrieval_loss",
    {retrieval_case({1, 5}, 1), retrieval_case({7, 16}, 0.25), retrieval_case({33, 129}, 0.0883883),
     retrieval_case({128, 64}, 0.125), retrieval_case({8, 16, 3}, 0.25),
     retrieval_case({24, 40, 4, 5}, 0.25), retrieval_case({300, 24, 2, 3}, 0.2)});

TEST(RetrievalLoss, CountsWhoIsFound) {
  Device device({.num_threads = 1, .poison = true});
  Stream stream(device);
  Mesh mesh = Mesh::single();
  const Batch batch;
  Context context{.stream = stream, .mesh = mesh, .batch = batch};
  const Value queries{Tensor::from_host<float>(stream, {1, 0, 0, 1, 1, 1}, {3, 2}), nullptr};
  const Value contexts{Tensor::from_host<float>(stream, {2, 0, 0, 2, 3, 0}, {3, 2}), nullptr};
  const RetrievalLoss found = retrieval_loss(context, queries, contexts, {}, 1);
  std::vector<float> shares;
  for (const std::int64_t most : {1, 2, 3, 50}) {
    shares.push_back(found_among(stream, found.ranks, most, FoundAs::share, DType::fp32)
                         .to_host<float>(stream)[0]);
  }
  EXPECT_EQ(shares, (std::vector<float>{2 / 3.f, 1, 1, 1}));
  EXPECT_THROW(retrieval_loss(context, queries, {contexts.data.slice(0, 2), nullptr}, {}, 1),
               Error);
}

TEST(RetrievalLoss, LooksAmongSeveralContextsOfEachQuery) {
  Device device({.num_threads = 1, .poison = true});
  Stream stream(device);
  Mesh mesh = Mesh::single();
  const Batch batch;
  Context context{.stream = stream, .mesh = mesh, .batch = batch};
  const Value queries{Tensor::from_host<float>(stream, {1, 0, 0, 1}, {2, 2}), nullptr};
  // The second query's first negative beats its own context, and one that is missing would.
  const Value contexts{
      Tensor::from_host<float>(stream, {1, 0, 2, 0, 0, 9, 0, 3, 0, 4, 0, 1}, {6, 2}), nullptr};
  const Tensor present = Tensor::from_host<float>(stream, {1, 1, 0, 1, 1, 1}, {6});
  const RetrievalLoss found = retrieval_loss(context, queries, contexts, present, 1);
  EXPECT_EQ(found.ranks.to_host<std::int32_t>(stream), (std::vector<std::int32_t>{1, 1}));
  const double first = std::log(std::exp(1) + std::exp(2) + 3) - 1;
  const double second = std::log(2 + std::exp(3) + std::exp(4) + std::exp(1)) - 3;
  EXPECT_NEAR(found.loss.to_host<float>(stream)[0], (first + second) / 2, 1e-6);

  const Tensor none = Tensor::from_host<float>(stream, {0, 1, 0, 1, 0, 1}, {6});
  const RetrievalLoss one = retrieval_loss(context, queries, contexts, none, 1);
  EXPECT_EQ(one.ranks.to_host<std::int32_t>(stream), (std::vector<std::int32_t>{-1, 0}));
  EXPECT_NEAR(one.loss.to_host<float>(stream)[0], std::log(1 + std::exp(3) + std::exp(1)) - 3,
              1e-6);
  EXPECT_EQ(
      found_among(stream, one.ranks, 1, FoundAs::number, DType::fp32).to_host<float>(stream)[0],
      1.f);
  EXPECT_EQ(retrieval_ranks(context, queries, contexts, none).to_host<std::int32_t>(stream),
            (std::vector<std::int32_t>{-1, 0}));
}

}  // namespace
}  // namespace bloomery::testing
