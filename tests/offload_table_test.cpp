// State that lies on the host changes no bit: losses, gradients and weights under every stage of
// ZeRO, with pipelines and tensor parallelism, beside the same run with everything on the device.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/temporary_folder.h"
#include "models/family.h"
#include "train/parity/layout_text.h"
#include "train/parity/parity.h"

namespace bloomery::testing {
namespace {

constexpr ParityWork kWork{
    .micro_batches = 4, .sequences = 1, .length = 8, .vocabulary = 93, .steps = 3};

RankOptions options_of(const std::string& layout, DType dtype) {
  RankOptions o;
  o.model.family = "gpt";
  if (const auto defaults = find_family(o.model.family).defaults) {
    defaults(o.model);
  }
  o.model.num_layers = 4;
  o.model.hidden_size = 64;
  o.model.attention.num_heads = 4;
  o.model.attention.num_groups = 4;
  o.model.vocabulary.size = 93;
  o.model.vocabulary.divisible_by = 8;
  o.model.positions.max_length = 32;
  o.model.attention.dropout = o.model.residual.dropout = 0.1f;
  o.dtype = dtype;
  o.layout = parse_layout(layout);
  o.device.num_threads = 1;
  o.device.poison = true;
  o.replicas.bucket_elements = 20000;  // several, and shares that end inside of some
  o.optimizer.schedule.learning_rate = 1e-2;
  return o;
}

const char* const kLayouts[] = {"dp2",
                                "dp2+z1",
                                "dp2+z2",
                                "dp2+z3",
                                "pp2+dp2",
                                "pp2+dp2+z1",
                                "pp2+dp2+z2",
                                "pp2+dp2+z3",
                                "tp2+dp2",
                                "tp2+dp2+z1",
                                "tp2sp+dp2+z2",
                                "tp2sp+dp2+z3",
                                "tp2sp+pp2zb+dp2+z1",
                                "tp2sp+pp2v2+dp2+z3",
                                "pp2",
                                "z3",
                                ""};

class OffloadTable : public ::testing::TestWithParam<const char*> {};

void expect_same_bits(const ParityRun& run, const ParityRun& reference, const std::string& what) {
  EXPECT_EQ(first_outside(compare(run, reference), 0), "") << what;
}

TEST_P(OffloadTable, OptimizerOnTheHost) {
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    RankOptions o = options_of(GetParam(), dtype);
    const ParityRun reference = run_steps(o, kWork);
    for (const double share : {1.0, 0.3}) {
      o.offload.optimizer_share = share;
      expect_same_bits(run_steps(o, kWork), reference, concat(dtype, ", share ", share));
    }
  }
}

TEST_P(OffloadTable, OptimizerInFiles) {
  const TemporaryFolder folder;
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    RankOptions o = options_of(GetParam(), dtype);
    const ParityRun reference = run_steps(o, kWork);
    for (const bool uring : {true, false}) {
      o.offload = {.optimizer_share = uring ? 1 : 0.5,
                   .folder = folder.path(),
                   .files = {.block_bytes = 4096, .queue_depth = 4, .use_uring = uring},
                   .values = uring && o.layout.sharded.values};
      expect_same_bits(run_steps(o, kWork), reference, concat(dtype, uring ? ", io_uring" : ""));
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_P(OffloadTable, ValuesOnTheHost) {
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    RankOptions o = options_of(GetParam(), dtype);
    if (!o.layout.sharded.values) {
      GTEST_SKIP() << "values are whole on every rank";
    }
    const ParityRun reference = run_steps(o, kWork);
    o.offload = {.optimizer_share = 1, .values = true};
    expect_same_bits(run_steps(o, kWork), reference, concat(dtype));
  }
}

TEST_P(OffloadTable, ValuesInFiles) {
  const TemporaryFolder folder;
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    RankOptions o = options_of(GetParam(), dtype);
    if (!o.layout.sharded.values) {
      GTEST_SKIP() << "values are whole on every rank";
    }
    const ParityRun reference = run_steps(o, kWork);
    for (const bool state_too : {false, true}) {
      o.offload = {.optimizer_share = 1,
                   .folder = state_too ? folder.path() : "",
                   .values = true,
                   .values_folder = folder.path()};
      expect_same_bits(run_steps(o, kWork), reference,
                       concat(dtype, state_too ? ", state too" : ""));
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_P(OffloadTable, InputsOfRecomputedLayersOnTheHost) {
  for (const int layers : {1, 2}) {
    RankOptions o = options_of(GetParam(), DType::bf16);
    if (o.layout.chunks * o.layout.degrees.pipeline * layers > o.model.num_layers) {
      continue;
    }
    o.recompute = {.method = RecomputeOptions::Method::uniform, .num_layers = layers};
    const ParityRun reference = run_steps(o, kWork);
    o.offload.divide_inputs = true;
    expect_same_bits(run_steps(o, kWork), reference, concat("divided inputs, every ", layers));
    o.offload.activations = true;
    expect_same_bits(run_steps(o, kWork), reference, concat("inputs, every ", layers));
    o.offload = {.optimizer_share = 1, .values = o.layout.sharded.values, .activations = true};
    expect_same_bits(run_steps(o, kWork), reference, concat("all, every ", layers));
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, OffloadTable, ::testing::ValuesIn(kLayouts),
                         [](const ::testing::TestParamInfo<const char*>& each) {
                           std::string name = *each.param == 0 ? "one" : each.param;
                           std::ranges::replace(name, '+', '_');
                           return name;
                         });

TEST(Offload, OfEveryOptimizerChangesNoBit) {
  const TemporaryFolder folder;
  for (const OptimizerRule& rule : {OptimizerRule(Momentum{}), OptimizerRule(Lion{})}) {
    for (const char* layout : {"dp2+z1", "z3"}) {
      RankOptions o = options_of(layout, DType::bf16);
      o.optimizer.rule = rule;
      const ParityRun reference = run_steps(o, kWork);
      o.offload = {.optimizer_share = 0.5};
      expect_same_bits(run_steps(o, kWork), reference, concat(name_of(rule), " on the host"));
      o.offload = {.optimizer_share = 1, .folder = folder.path()};
      expect_same_bits(run_steps(o, kWork), reference, concat(name_of(rule), " in files"));
    }
  }
}

// Whose device has less to hold: by the allocator's own count.
TEST(Offload, TheDeviceHoldsLess) {
  RankOptions o = options_of("z3", DType::bf16);
  Rank plain(o);
  o.offload = {.optimizer_share = 1};
  Rank optimizer(o);
  o.offload.values = true;
  Rank values(o);
  const auto used = [](Rank& rank) { return rank.stream().memory()->statistics().used_bytes; };
  const auto elements = static_cast<std::size_t>(plain.store().num_elements());
  EXPECT_GE(used(plain), used(optimizer) + 10 * elements);
  EXPECT_EQ(optimizer.store().bytes().master + optimizer.optimizer().state_bytes(), 0u);
  EXPECT_EQ(values.store().bytes().values, 0u);
  EXPECT_GE(optimizer.stage().host()->used_bytes(), 12 * elements);
  EXPECT_GE(values.stage().host()->used_bytes(), 14 * elements);
  const TemporaryFolder folder;
  o.offload.values_folder = folder.path();
  Rank files(o);
  EXPECT_EQ(files.store().bytes().values, 0u);
  EXPECT_LE(files.stage().host()->used_bytes() + 2 * elements, values.stage().host()->used_bytes());
}

// Beside a GPU. What is updated on the host is updated alike, whatever else lies there; from
// updates on the GPU it differs as far as the two round differently.
class OffloadOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_cuda_devices() == 0) {
      GTEST_SKIP() << "no GPU here";
    }
  }
  static RankOptions options(DType dtype) {
    RankOptions o = options_of("z3", dtype);
    o.device = {.kind = DeviceKind::cuda};
    return o;
  }
};

TEST_F(OffloadOnGpu, UpdatesOnTheHostAreThoseOfTheGpu) {
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    RankOptions o = options(dtype);
    const ParityRun reference = run_steps(o, kWork);
    o.offload.optimizer_share = 1;
    const ParityRun on_host = run_steps(o, kWork);
    EXPECT_EQ(first_outside(compare(on_host, reference), dtype == DType::fp32 ? 1e-4 : 2e-2), "");
    const TemporaryFolder folder;
    o.offload.folder = folder.path();
    expect_same_bits(run_steps(o, kWork), on_host, concat(dtype, " in files"));
  }
}

TEST_F(OffloadOnGpu, InputsOfRecomputedLayersChangeNoBit) {
  RankOptions o = options(DType::bf16);
  o.recompute = {.method = RecomputeOptions::Method::uniform, .num_layers = 1};
  const ParityRun reference = run_steps(o, kWork);
  o.offload.activations = true;
  expect_same_bits(run_steps(o, kWork), reference, "inputs");
}

// One rank's buckets end at blocks then, which moves partial sums of the norm.
TEST_F(OffloadOnGpu, ValuesOnTheHostAreThoseOfTheDevice) {
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    RankOptions o = options(dtype);
    o.offload.optimizer_share = 1;
    const ParityRun on_host = run_steps(o, kWork);
    o.offload.values = true;
    EXPECT_EQ(first_outside(compare(run_steps(o, kWork), on_host), 1e-5), "") << dtype;
  }
}

TEST_F(OffloadOnGpu, ALimitOfMemoryIsKeptAndNamed) {
  RankOptions o = options(DType::bf16);
  o.device.memory_limit = 4 << 20;
  try {
    Rank rank(o);
    rank.step(std::vector<HostBatch>{random_batch(64, 32, 93, 1, 0)});
    FAIL() << "the limit was passed";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("--device-memory-limit"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace bloomery::testing
