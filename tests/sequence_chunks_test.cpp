// Layers that compute long sequences chunk by chunk train like those that compute them whole:
// losses and gradients of every tensor, under every kind of layout, with keys on the device or on
// the host.
#include <gtest/gtest.h>

#include "models/family.h"
#include "train/parity/layout_text.h"
#include "train/parity/parity.h"

namespace bloomery::testing {
namespace {

constexpr ParityWork kWork{
    .micro_batches = 4, .sequences = 2, .length = 24, .vocabulary = 93, .steps = 2};

RankOptions options_of(const std::string& family, const std::string& layout = "") {
  RankOptions o;
  o.model.family = family;
  if (const auto defaults = find_family(family).defaults) {
    defaults(o.model);
  }
  o.model.num_layers = 4;
  o.model.hidden_size = 32;
  o.model.attention.num_heads = 8;
  o.model.attention.num_groups = family == "gpt" || family == "neox" ? 8 : 4;
  if (family == "qwen3") {
    o.model.attention.window = 7;
    o.model.attention.window_layers = {1, 0, 0, 1};
  }
  if (family == "neox") {
    o.model.positions.rotary_fraction = 0.5;  // of four channels
  }
  o.model.vocabulary.size = 93;
  o.model.vocabulary.divisible_by = 8;
  o.model.positions.max_length = 32;
  o.model.init.std = 0.1;
  o.layout = parse_layout(layout);
  o.device = {.num_threads = 1, .poison = true};
  o.replicas.bucket_elements = 20000;
  o.optimizer.rule = Momentum{.momentum = 0};  // of which weights are as near as gradients
  o.optimizer.schedule.learning_rate = 0.1;
  o.optimizer.schedule.decay_style = DecayStyle::constant;
  return o;
}

void set_dropout(RankOptions& o, float dropout) {
  o.model.attention.dropout = o.model.residual.dropout = dropout;
}

TEST(SequenceChunks, TrainLikeWholeSequences) {
  for (const char* family : {"gpt", "llama", "qwen3", "neox"}) {
    for (const float dropout : {0.0f, 0.1f}) {
      RankOptions o = options_of(family);
      set_dropout(o, dropout);
      const ParityRun whole = run_steps(o, kWork);
      for (const std::int64_t chunk : {5, 8, 64}) {
        o.sequence_chunk = chunk;
        o.offload.keys = chunk == 8;
        EXPECT_EQ(first_outside(compare(run_steps(o, kWork), whole), 1e-5), "")
            << family << ", dropout " << dropout << ", chunks of " << chunk;
      }
    }
  }
}

TEST(SequenceChunks, ComposeWithEveryLayout) {
  RankOptions one = options_of("llama");
  set_dropout(one, 0.1f);
  const ParityRun whole = run_steps(one, kWork);
  for (const char* layout : {"tp2", "ul2", "ul4", "tp2+ul2", "pp2", "pp2zb", "pp2v2", "dp2+z1",
                             "dp2+z2", "dp2+z3", "ul2+dp2+z3", "tp2+ul2+pp2"}) {
    RankOptions o = options_of("llama", layout);
    set_dropout(o, 0.1f);
    o.sequence_chunk = 8;
    EXPECT_EQ(first_outside(compare(run_steps(o, kWork), whole), 1e-5), "") << layout;
  }
}

// Where keys, values and inputs of layers wait changes no bit, nor does recomputation of several
// layers around them.
TEST(SequenceChunks, PlacesChangeNoBit) {
  for (const char* layout : {"", "ul2+dp2+z3", "tp2+pp2zb"}) {
    RankOptions o = options_of("llama", layout);
    set_dropout(o, 0.1f);
    o.dtype = DType::bf16;
    o.sequence_chunk = 8;
    const ParityRun reference = run_steps(o, kWork);
    const auto expect_same = [&](const char* what) {
      EXPECT_EQ(first_outside(compare(run_steps(o, kWork), reference), 0), "")
          << layout << ": " << what;
    };
    o.offload.keys = true;
    expect_same("keys on the host");
    o.offload.activations = true;
    expect_same("and inputs");
    o.recompute = {.method = RecomputeOptions::Method::uniform, .num_layers = 1};
    expect_same("recomputed one by one");
    o.recompute.num_layers = 2;
    expect_same("recomputed by twos");
  }
}

// Bytes at the peak of each token more that a sequence has, beyond those of a chunk, on a GPU.
double bytes_per_token(std::int64_t layers, std::int64_t chunk, bool on_host) {
  const auto peak = [&](std::int64_t length) {
    RankOptions o = options_of("llama");
    o.model.num_layers = layers;
    o.model.hidden_size = 256;
    o.model.positions.max_length = length;
    o.device = {.kind = DeviceKind::abstract, .stands_for = DeviceKind::cuda};
    o.dtype = DType::bf16;
    o.recompute.method = RecomputeOptions::Method::uniform;
    o.sequence_chunk = chunk;
    o.offload.activations = o.offload.keys = on_host;
    Rank rank(o);
    rank.step(std::vector<HostBatch>{random_batch(1, length, 93, 1, 0)});
    return static_cast<double>(rank.stream().memory()->statistics().peak_used_bytes);
  };
  // Of both lengths attention needs more scratch than it may have, and none is planned for.
  return (peak(65536) - peak(32768)) / 32768;
}

TEST(SequenceChunks, BoundTheMemoryOfALayer) {
  constexpr double kRow = 256 * 2;  // of the hidden size, in 16 bits
  const double whole = bytes_per_token(4, 0, false), chunks = bytes_per_token(4, 1024, false);
  EXPECT_LT(chunks, 0.4 * whole);
  EXPECT_GE(bytes_per_token(12, 1024, false), chunks + 8 * kRow);  // an input of each layer
  // On the host it does not matter how many layers there are: four inputs may be on their way, and
  // there are the stream, its gradient and what the head makes of them.
  EXPECT_LT(bytes_per_token(12, 1024, true), 8 * kRow);
}

}  // namespace
}  // namespace bloomery::testing
