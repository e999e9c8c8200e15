#include "generate/resident/paired.h"

#include "device/overlap.h"
#include "generate/resident/step_case.h"

namespace bloomery::testing {
namespace {

struct Case {
  Decoder decoder;
  int pairs;  // of a layer
};

void PrintTo(const Case& c, std::ostream* out) { PrintTo(c.decoder, out); }

class PairedTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (num_cuda_devices() == 0) {
      GTEST_SKIP() << "no CUDA device";
    }
  }
};

// Beside kernels that do not overlap.
TEST_P(PairedTest, ComputesWhatTheKernelsDo) {
  const auto& [d, pairs] = GetParam();
  Device device({.kind = DeviceKind::cuda});
  Stream stream(device);
  Step step(stream, d);
  const std::vector<Tensor> expected = step.run();
  const OverlapLaunches overlap(stream);
  PairedKernels paired(stream);
  for (int repetition = 0; repetition < 5; ++repetition) {
    std::vector<Tensor> found;
    paired.run([&] { found = step.run(); });
    EXPECT_EQ(paired.num_pairs(), pairs * d.layers);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_LE(largest_error(stream, found[i], expected[i]), d.dtype == DType::bf16 ? 2e-2 : 3e-3)
          << "result " << i << ", repetition " << repetition;
    }
  }
}

TEST_P(PairedTest, RunsInAGraph) {
  const Decoder& d = GetParam().decoder;
  Device device({.kind = DeviceKind::cuda});
  Stream stream(device);
  const OverlapLaunches overlap(stream);
  Step step(stream, d);
  PairedKernels paired(stream);
  const Tensor kept = Tensor::empty(stream, DType::fp32, {d.rows, d.columns});
  const auto work = [&] {
    paired.run([&] {
      const Tensor output = step.run().back();
      stream.copy(kept.data(), output.data(), kept.bytes());
    });
  };
  work();
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

Decoder with_rows(Decoder decoder, std::int64_t rows) {
  decoder.rows = rows;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto length = static_cast<std::int32_t>(r * 97 % (decoder.capacity - 1));
    decoder.lengths.push_back(r % 5 == 4 ? -length - 1 : length);
  }
  return decoder;
}

std::vector<Case> cases() {
  const Decoder small{.hidden = 128, .groups = 2, .head_dim = 64, .columns = 304, .capacity = 128};
  Decoder pages = small, turned = small, halves = small, learned = small, narrow = small;
  pages.in_pages = true;
  pages.capacity = 512;  // whose keys several blocks share
  turned.interleaved = true;
  halves.dtype = DType::fp16;
  learned.llama = false;
  narrow.head_dim = 32;
  const Decoder wide{.hidden = 128,
                     .groups = 2,
                     .heads_per_group = 6,
                     .head_dim = 128,
                     .ffn = 8960,
                     .columns = 304,
                     .layers = 1,
                     .capacity = 128};
  return {{with_rows(small, 5), 2},   {with_rows(pages, 17), 2}, {with_rows(turned, 33), 2},
          {with_rows(halves, 64), 2}, {with_rows(small, 65), 1}, {with_rows(learned, 20), 0},
          {with_rows(narrow, 16), 1}, {with_rows(wide, 8), 2},   {with_rows(wide, 64), 2}};
}
INSTANTIATE_TEST_SUITE_P(Decoders, PairedTest, ::testing::ValuesIn(cases()));

}  // namespace
}  // namespace bloomery::testing
