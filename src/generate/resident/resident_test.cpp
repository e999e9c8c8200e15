#include "generate/resident/resident.h"

#include "generate/resident/step_case.h"

namespace bloomery::testing {
namespace {

class ResidentTest : public ::testing::TestWithParam<Decoder> {
 protected:
  void SetUp() override {
    if (num_cuda_devices() == 0) {
      GTEST_SKIP() << "no CUDA device";
    }
  }
};

TEST_P(ResidentTest, ComputesWhatTheKernelsDo) {
  const Decoder& d = GetParam();
  Device device({.kind = DeviceKind::cuda});  // poisoning would come between the kernels
  Stream stream(device);
  if (!ResidentSteps::possible(device, d.dtype, d.rows)) {
    GTEST_SKIP() << "not for this GPU";
  }
  Step step(stream, d);
  const std::vector<Tensor> expected = step.run();
  ResidentSteps steps(stream, d.dtype, d.rows);
  std::vector<unsigned char> first;
  for (int repetition = 0; repetition < 20; ++repetition) {
    std::vector<Tensor> found;
    steps.run([&] { found = step.run(); });
    EXPECT_EQ(steps.num_phases(), 5 * d.layers + 1);
    EXPECT_EQ(steps.num_single(), 0);
    const double tolerance = d.dtype == DType::bf16 ? 2e-2 : 3e-3;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_LE(largest_error(stream, found[i], expected[i]), tolerance)
          << "result " << i << ", repetition " << repetition;
    }
    const std::vector<unsigned char> bytes = to_bytes(stream, found.back());
    first = first.empty() ? bytes : first;
    ASSERT_EQ(bytes, first) << "repetition " << repetition;
  }
}

TEST_P(ResidentTest, RunsInAGraph) {
  const Decoder& d = GetParam();
  Device device({.kind = DeviceKind::cuda});
  Stream stream(device);
  if (!ResidentSteps::possible(device, d.dtype, d.rows)) {
    GTEST_SKIP() << "not for this GPU";
  }
  Step step(stream, d);
  ResidentSteps steps(stream, d.dtype, d.rows);
  const Tensor kept = Tensor::empty(stream, DType::fp32, {d.rows, d.columns});
  const auto work = [&] {
    steps.run([&] {
      const Tensor output = step.run().back();
      stream.copy(kept.data(), output.data(), kept.bytes());
    });
  };
  work();  // makes the weights, between which kernels run by themselves
  work();
  const std::vector<unsigned char> expected = to_bytes(stream, kept);
  Graph graph;
  graph.capture(stream, work);
  for (int replay = 0; replay < 3; ++replay) {
    stream.fill(kept.data(), 0, kept.bytes());
    graph.replay(stream);
    EXPECT_EQ(to_bytes(stream, kept), expected) << "replay " << replay;
  }
}

const Decoder kGpt2{.rows = 4,
                    .hidden = 768,
                    .groups = 12,
                    .heads_per_group = 1,
                    .head_dim = 64,
                    .ffn = 3072,
                    .columns = 5000,
                    .llama = false,
                    .lengths = {1, 100, 257, 300}};
const Decoder kQwen{.hidden = 1536,
                    .groups = 2,
                    .heads_per_group = 6,
                    .head_dim = 128,
                    .ffn = 8960,
                    .columns = 20000,
                    .capacity = 1500,
                    .lengths = {1200}};

Decoder in_codes(Decoder decoder, QuantizedFormat format) {
  decoder.format = format;
  return decoder;
}

std::vector<Decoder> decoders() {
  return {
      {.lengths = {0}},
      {.dtype = DType::fp16, .rows = 2, .llama = false, .lengths = {3, 400}},
      {.rows = 2, .groups = 2, .head_dim = 64, .in_pages = true, .lengths = {64, 501}},
      {.rows = 3, .groups = 2, .head_dim = 64, .interleaved = true, .lengths = {5, -7, 511}},
      kGpt2,
      kQwen,
      {.hidden = 256,
       .groups = 1,
       .heads_per_group = 1,
       .head_dim = 256,
       .ffn = 18944,
       .lengths = {130}},
      {.format = QuantizedFormat::int8, .lengths = {0}},
      {.dtype = DType::fp16,
       .format = QuantizedFormat::fp8,
       .rows = 3,
       .hidden = 96,
       .llama = false,
       .lengths = {5, -7, 300}},
      in_codes(kGpt2, QuantizedFormat::int8),
      in_codes(kQwen, QuantizedFormat::int8),
      in_codes(kQwen, QuantizedFormat::fp8),
  };
}
INSTANTIATE_TEST_SUITE_P(Decoders, ResidentTest, ::testing::ValuesIn(decoders()));

}  // namespace
}  // namespace bloomery::testing
