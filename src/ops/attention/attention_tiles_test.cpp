// bf16 attention on tile registers beyond the case list: how weights become operands, what NaN
// does, and, when asked for, times.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>

#include "base/random.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_settings.h"
#include "ops/attention/tile_rounding.h"
#include "ops/matmul/amx.h"

namespace bloomery {
namespace {

std::vector<float> random_numbers(std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(random_normal(random_key(1, "weights"), i)));
  }
  return values;
}

TEST(TileRounding, GivesRowsAndPairsOfRows) {
  constexpr std::int64_t kRows = 64, kColumns = 96, kStride = 100;
  std::vector<float> from = random_numbers(kRows * kStride);
  from[3] = std::numeric_limits<float>::infinity();
  from[kStride + 5] = 0;
  for (const bool vectors : {false, true}) {
    if (vectors && cpu_level() < 3) continue;
    std::vector<bfloat16> rows(from.size()), pairs(kRows * kColumns);
    amx::round_rows(from.data(), kStride, kRows, kColumns, vectors, rows.data());
    amx::round_pairs(from.data(), kStride, kRows, kColumns, vectors, pairs.data());
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t c = 0; c < kColumns; ++c) {
        const std::uint16_t expected = bfloat16(from[r * kStride + c]).bits;
        const std::int64_t tile = (c / 32 * (kRows / 32) + r / 32) * 2 + c / 16 % 2;
        ASSERT_EQ(rows[r * kStride + c].bits, expected) << r << ' ' << c;
        ASSERT_EQ(pairs[tile * 512 + r % 32 / 2 * 32 + c % 16 * 2 + r % 2].bits, expected)
            << r << ' ' << c;
      }
    }
  }
}

TEST(TileRounding, KeepsNan) {
  std::vector<float> from(32 * 32, 1.0f);
  for (std::size_t i = 0; i < from.size(); i += 3) {
    from[i] = std::bit_cast<float>(i % 2 == 0 ? 0x7FC00000u : 0xFFFF0000u);
  }
  for (const bool vectors : {false, true}) {
    if (vectors && cpu_level() < 3) continue;
    std::vector<bfloat16> to(from.size());
    amx::round_rows(from.data(), 32, 32, 32, vectors, to.data());
    for (std::size_t i = 0; i < from.size(); ++i) {
      EXPECT_EQ(std::isnan(static_cast<float>(to[i])), std::isnan(from[i])) << i;
    }
  }
}

// Self-attention of equal numbers of query and key heads, forward and backward.
struct Bench {
  Bench(std::int64_t sequences, std::int64_t length, std::int64_t heads, std::int64_t dim,
        AttentionTiles tiles, int num_threads)
      : device({.num_threads = num_threads}), stream(device) {
    device.service<AttentionSettings>().tiles = tiles;
    const std::int64_t tokens = sequences * length, width = heads * dim;
    std::vector<bfloat16> values;
    for (const float x : random_numbers(tokens * 3 * width)) values.emplace_back(x);
    qkv = Tensor::from_host(stream, values, {tokens, 3 * width});
    values.resize(static_cast<std::size_t>(tokens * width));
    grad_out = Tensor::from_host(stream, values, {tokens, width});
    grad_qkv = Tensor::empty(stream, DType::bf16, qkv.shape());
    out = Tensor::empty(stream, DType::bf16, {tokens, width});
    lse = Tensor::empty(stream, DType::fp32, {sequences, heads, length});
    problem = {.dtype = DType::bf16,
               .num_sequences = sequences,
               .query_length = length,
               .key_length = length,
               .num_heads = heads,
               .num_groups = heads,
               .head_dim = dim,
               .scale = 1.0f / std::sqrt(static_cast<float>(dim)),
               .causal = true};
  }
  HeadView heads_of(const Tensor& buffer, int which) const {
    return {.data = static_cast<bfloat16*>(buffer.data()) + which * problem.head_dim,
            .token_stride = 3 * problem.num_heads * problem.head_dim,
            .group_stride = 3 * problem.head_dim};
  }
  void forward() {
    launch(stream, AttentionForward{.problem = problem,
                                    .q = heads_of(qkv, 0),
                                    .k = heads_of(qkv, 1),
                                    .v = heads_of(qkv, 2),
                                    .out = out,
                                    .lse = lse});
  }
  void backward() {
    launch(stream, AttentionBackward{.problem = problem,
                                     .q = heads_of(qkv, 0),
                                     .k = heads_of(qkv, 1),
                                     .v = heads_of(qkv, 2),
                                     .out = out,
                                     .lse = lse,
                                     .grad_out = grad_out,
                                     .grad_q = heads_of(grad_qkv, 0),
                                     .grad_k = heads_of(grad_qkv, 1),
                                     .grad_v = heads_of(grad_qkv, 2)});
  }

  Device device;
  Stream stream;
  AttentionProblem problem;
  Tensor qkv, grad_qkv, out, grad_out, lse;
};

std::vector<AttentionTiles> tiles_here() {
  std::vector<AttentionTiles> tiles{AttentionTiles::emulated};
  if (amx_usable()) tiles.push_back(AttentionTiles::hardware);
  return tiles;
}

// A NaN in Q reaches its own row; one in K or V may reach every query of a block that sees the key,
// since hidden keys have the weight 0 there.
TEST(AttentionOnTiles, NanStaysNan) {
  constexpr std::int64_t kLength = 70, kDim = 40, kHeads = 2, kAt = 66;
  for (const AttentionTiles tiles : tiles_here()) {
    for (int which = 0; which < 3; ++which) {
      Bench b(1, kLength, kHeads, kDim, tiles, 2);
      static_cast<bfloat16*>(b.heads_of(b.qkv, which).data)[kAt * 3 * kHeads * kDim + 7] =
          bfloat16(NAN);
      b.forward();
      b.backward();
      const std::vector<bfloat16> out = b.out.to_host<bfloat16>(b.stream);
      const std::vector<bfloat16> grads = b.grad_qkv.to_host<bfloat16>(b.stream);
      const auto nan = [](bfloat16 x) { return std::isnan(static_cast<float>(x)); };
      EXPECT_TRUE(nan(out[kAt * kHeads * kDim + 7])) << which;
      EXPECT_FALSE(nan(out[3 * kHeads * kDim + 7])) << which;           // an earlier block
      EXPECT_FALSE(nan(out[kAt * kHeads * kDim + kDim + 7])) << which;  // another head
      EXPECT_TRUE(nan(grads[(kAt * 3 * kHeads + which) * kDim + 8]) || which == 2) << which;
    }
  }
}

TEST(AttentionOnTiles, HardwareIsRefusedWhereThereIsNone) {
  if (amx_usable()) GTEST_SKIP() << "this processor has AMX";
  Bench b(1, 8, 1, 8, AttentionTiles::hardware, 1);
  EXPECT_THROW(b.forward(), Error);
}

template <class Work>
double median_milliseconds(const Work& work) {
  constexpr int kWarmUps = 3, kRepeats = 31;
  std::vector<double> times;
  for (int i = 0; i < kWarmUps + kRepeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    if (i >= kWarmUps) times.push_back(elapsed.count());
  }
  std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
  return times[kRepeats / 2];
}

// Not a check: --gtest_also_run_disabled_tests --gtest_filter='*AttentionTimes*'.
TEST(AttentionOnTiles, DISABLED_AttentionTimes) {
  for (const int threads : {1, 0}) {
    for (const AttentionTiles tiles : {AttentionTiles::vectors, AttentionTiles::automatic}) {
      Bench b(16, 256, 6, 64, tiles, threads);
      const double forward = median_milliseconds([&] { b.forward(); });
      const double backward = median_milliseconds([&] { b.backward(); });
      std::cout << (tiles == AttentionTiles::vectors ? "vectors  " : "automatic")
                << (threads == 1 ? "  one thread   " : "  all threads  ") << "forward " << forward
                << "  backward " << backward << " ms\n";
    }
  }
}

}  // namespace
}  // namespace bloomery
