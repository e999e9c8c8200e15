#include "parallel/retrieval_loss.h"

#include <gtest/gtest.h>

#include "comm/mesh.h"
#include "comm/threads.h"
#include "harness/op_harness.h"

namespace bloomery::testing {
namespace {

// With scores = scale * queries contexts^T [rows, rows]: loss = mean over rows of logsumexp(scores)
// - scores[row][row].
OpCase retrieval_case(std::int64_t rows, std::int64_t width, double scale) {
  OpCase result{.name = concat("rows=", rows, ",width=", width, ",scale=", scale),
                .seed_outputs = false};
  result.inputs = {{.name = "queries", .shape = {rows, width}},
                   {.name = "contexts", .shape = {rows, width}}};
  result.batch = [rows](Batch& batch, Inputs&) {
    batch.num_sequences = rows;
    batch.length = 1;
  };
  result.forward = [scale](Context& context, Inputs& in) -> Outputs {
    const RetrievalLoss found =
        retrieval_loss(context, in.value("queries"), in.value("contexts"), scale, {});
    return {{"loss", {found.loss, nullptr}}};
  };
  result.attributes = {{"scale", concat(scale)}};
  result.tolerance = {{DType::fp32, 1e-5}, {DType::bf16, 8e-3}, {DType::fp16, 1e-3}};
  return result;
}

const bool kRegistered = register_op_tests(
    "retrieval_loss", {retrieval_case(1, 5, 1), retrieval_case(7, 16, 0.25),
                       retrieval_case(33, 129, 0.0883883), retrieval_case(128, 64, 0.125)});

TEST(RetrievalLoss, CountsWhoIsFound) {
  Device device({.num_threads = 1, .poison = true});
  Stream stream(device);
  Mesh mesh = Mesh::single();
  const Batch batch;
  Context context{.stream = stream, .mesh = mesh, .batch = batch};
  const Value queries{Tensor::from_host<float>(stream, {1, 0, 0, 1, 1, 1}, {3, 2}), nullptr};
  const Value contexts{Tensor::from_host<float>(stream, {2, 0, 0, 2, 3, 0}, {3, 2}), nullptr};
  const std::vector<std::int64_t> topk = {1, 2, 3, 50};
  const RetrievalLoss found = retrieval_loss(context, queries, contexts, 1, topk);
  std::vector<float> shares;
  for (const Tensor& each : found.accuracies) {
    shares.push_back(each.to_host<float>(stream)[0]);
  }
  EXPECT_EQ(shares, (std::vector<float>{2 / 3.f, 1, 1, 1}));
  EXPECT_THROW(retrieval_loss(context, queries, {contexts.data.slice(0, 2), nullptr}, 1, {}),
               Error);
}

}  // namespace
}  // namespace bloomery::testing
