// Every CUDA implementation of attention against the fp64 CPU kernel on the same rounded inputs,
// forced one by one; the same bits twice; and, when asked for, their rates.
#include <gtest/gtest.h>

#include <cmath>

#include "harness/op_harness.h"
#include "ops/attention/attention_cuda_case_test.h"
#include "ops/attention/attention_settings.h"

namespace bloomery::testing {
namespace {

// A thread of a tensor-core tile holds, of every row and 32 keys, the keys 8j + 2t and 8j + 2t + 1.
// The flash kernels rely on these being one block of random bits, in the order of its lanes, and
// compare both halves of a word with a shifted threshold.
TEST(AttentionDropout, OneBlockHoldsTheKeysOfOneThread) {
  for (std::uint32_t first = 0; first < 256; first += 32) {
    for (std::uint32_t t = 0; t < 4; ++t) {
      for (std::uint32_t j = 0; j < 4; ++j) {
        for (std::uint32_t e = 0; e < 2; ++e) {
          const std::uint32_t key = first + 8 * j + 2 * t + e;
          EXPECT_EQ(attention_dropout_block(key), attention_dropout_block(first + 2 * t));
          EXPECT_EQ(attention_dropout_lane(key), static_cast<int>(2 * j + e));
        }
      }
    }
  }
}

TEST(AttentionDropout, ShiftedThresholdsDropTheSameElements) {
  for (const std::uint32_t threshold : {1u, 6554u, 32768u, 65535u}) {
    for (std::uint32_t i = 0; i < 1000; ++i) {
      const RandomBlock bits = dropout_block(77, i, 3, 5, i * 7);
      for (int word = 0; word < 4; ++word) {
        const bool low = (bits[word] << 16) < threshold << 16, high = bits[word] < threshold << 16;
        EXPECT_EQ(low, !dropout_keeps(bits, 2 * word, threshold));
        EXPECT_EQ(high, !dropout_keeps(bits, 2 * word + 1, threshold));
      }
    }
  }
}

struct Variant {
  AttentionCase shape;
  DType dtype;
  AttentionBackend backend;
  bool only_sm80 = false;
};

const char* backend_name(AttentionBackend backend) {
  switch (backend) {
    case AttentionBackend::automatic:
      return "automatic";
    case AttentionBackend::cudnn:
      return "cudnn";
    case AttentionBackend::flash:
      return "flash";
    case AttentionBackend::simple:
      return "simple";
  }
  return "";
}

// What cuDNN is used for; see attention_cudnn.cpp.
bool cudnn_forward(const AttentionCase& c) {
  return c.dropout == 0 && c.bias_reach == 0 && c.ranges == KeyRanges::none &&
         c.head_dim % 8 == 0 && c.head_dim <= 128 && (!c.causal || c.query_length == c.key_length);
}
bool cudnn_backward(const AttentionCase& c) {
  return cudnn_forward(c) && c.query_length % 64 == 0 && c.key_length % 64 == 0;
}

// Windows within, at and beyond the tiles of the kernels, and biases.
void add_windows_and_biases(std::vector<AttentionCase>& list) {
  for (const std::int64_t dim : {64, 90, 128}) {
    for (const std::int64_t window : {1, 33, 64, 200}) {
      AttentionCase c{.query_length = 448, .key_length = 448, .head_dim = dim, .window = window};
      list.push_back(c);
      c.ranges = KeyRanges::documents;
      list.push_back(c);
      c.ranges = KeyRanges::none;
      c.dropout = 0.1f;
      c.num_heads = 6;
      list.push_back(c);
    }
    list.push_back(
        {.query_length = 65, .key_length = 400, .head_dim = dim, .cross = true, .window = 100});
    for (const bool causal : {false, true}) {
      AttentionCase c{.query_length = 300, .key_length = 300, .head_dim = dim, .causal = causal};
      c.bias_reach = 40;
      list.push_back(c);
      c.bias_reach = 128;
      c.dropout = 0.1f;
      c.num_heads = 6;
      list.push_back(c);
      c.ranges = KeyRanges::padding;
      list.push_back(c);
    }
  }
  list.push_back({.query_length = 65, .key_length = 200, .cross = true, .bias_reach = 70});
  list.push_back({.query_length = 200, .key_length = 200, .window = 50, .bias_reach = 300});
  list.push_back({.num_sequences = 1,
                  .query_length = 2500,
                  .key_length = 2500,
                  .num_heads = 1,
                  .num_groups = 1,
                  .window = 600,
                  .bias_reach = 128});
}

std::vector<AttentionCase> cases() {
  std::vector<AttentionCase> list;
  add_windows_and_biases(list);
  for (const std::int64_t length : {1, 7, 64, 127, 129, 192, 333}) {
    for (const bool causal : {false, true}) {
      list.push_back({.query_length = length, .key_length = length, .causal = causal});
    }
  }
  for (const std::int64_t dim : {16, 40, 80, 96, 128}) {
    for (const std::int64_t length : {64, 150, 320}) {
      list.push_back({.query_length = length, .key_length = length, .head_dim = dim});
    }
  }
  for (const std::int64_t dim : {1, 5, 63, 90}) {  // no vector access
    list.push_back({.query_length = 70, .key_length = 70, .head_dim = dim});
  }
  for (const bool causal : {false, true}) {
    list.push_back({.query_length = 65, .key_length = 200, .cross = true, .causal = causal});
    list.push_back({.query_length = 200, .key_length = 65, .cross = true, .causal = causal});
    list.push_back({.query_length = 1, .key_length = 140, .cross = true, .causal = causal});
    list.push_back({.query_length = 128, .key_length = 192, .cross = true, .causal = causal});
  }
  for (const std::int64_t dim : {64, 96, 128}) {
    for (const std::int64_t length : {60, 257}) {
      const AttentionCase base{.query_length = length, .key_length = length, .head_dim = dim};
      for (const KeyRanges ranges :
           {KeyRanges::documents, KeyRanges::padding, KeyRanges::empty_middle}) {
        for (const bool causal : {false, true}) {
          AttentionCase c = base;
          c.ranges = ranges;
          c.causal = causal;
          list.push_back(c);
        }
      }
      AttentionCase dropout = base;
      dropout.dropout = 0.1f;
      list.push_back(dropout);
      dropout.ranges = KeyRanges::documents;
      list.push_back(dropout);
      AttentionCase grouped = base;
      grouped.num_heads = 6;
      grouped.num_groups = 2;
      list.push_back(grouped);
      grouped.dropout = 0.25f;
      list.push_back(grouped);
      grouped.cross = true;
      grouped.dropout = 0;
      list.push_back(grouped);
    }
  }
  list.push_back({.query_length = 80, .key_length = 80, .dropout = 1.0f});
  list.push_back({.num_sequences = 1,
                  .query_length = 1100,
                  .key_length = 1100,
                  .num_heads = 1,
                  .num_groups = 1});  // several splits of the key tiles
  list.push_back({.num_sequences = 140, .query_length = 130, .key_length = 130});  // one split
  return list;
}

std::vector<Variant> variants() {
  std::vector<Variant> list;
  if (!build::cuda) {
    return list;
  }
  for (const AttentionCase& c : cases()) {
    for (const DType dtype : {DType::bf16, DType::fp16}) {
      if (cudnn_forward(c)) {
        list.push_back({c, dtype, AttentionBackend::cudnn});
      }
      list.push_back({c, dtype, AttentionBackend::flash});
    }
    list.push_back({c, DType::bf16, AttentionBackend::flash, true});
    list.push_back({c, DType::fp32, AttentionBackend::simple});
  }
  for (const std::int64_t dim : {160, 257}) {  // only the simple kernels take these
    for (const DType dtype : {DType::fp32, DType::bf16}) {
      list.push_back({{.query_length = 70, .key_length = 70, .head_dim = dim, .dropout = 0.1f},
                      dtype,
                      AttentionBackend::simple});
    }
  }
  return list;
}

class CudaAttention : public ::testing::TestWithParam<Variant> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CudaAttention);

TEST_P(CudaAttention, AgreesWithTheCpu) {
  if (num_cuda_devices() == 0) {
    GTEST_SKIP() << "no GPU on this machine";
  }
  const Variant& variant = GetParam();
  if (variant.backend == AttentionBackend::cudnn && !attention_cudnn_available()) {
    GTEST_SKIP() << "this build has no cuDNN attention: run tools/fetch_headers first";
  }
  const AttentionBackend backward =
      variant.backend == AttentionBackend::cudnn && !cudnn_backward(variant.shape)
          ? AttentionBackend::flash
          : variant.backend;
  const Results oracle =
      run_attention(variant.shape,
                    {.device = DeviceKind::cpu, .dtype = DType::fp64, .rounded_to = variant.dtype});
  const AttentionRun run{.device = DeviceKind::cuda,
                         .dtype = variant.dtype,
                         .rounded_to = variant.dtype,
                         .forward = variant.backend,
                         .backward = backward,
                         .only_sm80 = variant.only_sm80};
  const Results first = run_attention(variant.shape, run);
  const double limit = variant.dtype == DType::fp32   ? 2e-5
                       : variant.dtype == DType::bf16 ? 1.2e-2
                                                      : 2e-3;
  ASSERT_EQ(first.size(), oracle.size());
  for (const auto& [name, expected] : oracle) {
    EXPECT_LE(relative_error(first.at(name), expected), name == "lse" ? 2e-5 : limit) << name;
  }
  EXPECT_TRUE(first == run_attention(variant.shape, run)) << "two runs differ in their bits";
}

INSTANTIATE_TEST_SUITE_P(All, CudaAttention, ::testing::ValuesIn(variants()),
                         [](const ::testing::TestParamInfo<Variant>& info) {
                           return concat(backend_name(info.param.backend),
                                         info.param.only_sm80 ? "_sm80_" : "_", info.param.dtype,
                                         "_", name(info.param.shape), "_", info.index);
                         });

// Forward and backward from different implementations fit together.
TEST(CudaAttentionMixed, BackwardOfOneFollowsForwardOfAnother) {
  if (num_cuda_devices() == 0) {
    GTEST_SKIP() << "no GPU on this machine";
  }
  const AttentionCase shape{.query_length = 192, .key_length = 192};
  const Results oracle = run_attention(
      shape, {.device = DeviceKind::cpu, .dtype = DType::fp64, .rounded_to = DType::bf16});
  std::vector<AttentionBackend> backends{AttentionBackend::flash, AttentionBackend::simple};
  if (attention_cudnn_available()) {
    backends.push_back(AttentionBackend::cudnn);
  }
  for (const AttentionBackend forward : backends) {
    for (const AttentionBackend backward : backends) {
      const Results results = run_attention(shape, {.device = DeviceKind::cuda,
                                                    .dtype = DType::bf16,
                                                    .rounded_to = DType::bf16,
                                                    .forward = forward,
                                                    .backward = backward});
      for (const auto& [name, expected] : oracle) {
        EXPECT_LE(relative_error(results.at(name), expected), 1.2e-2)
            << name << ", forward " << backend_name(forward) << ", backward "
            << backend_name(backward);
      }
    }
  }
}

TEST(CudaAttentionErrors, ForcedBackendSaysWhatItCannotDo) {
  if (num_cuda_devices() == 0) {
    GTEST_SKIP() << "no GPU on this machine";
  }
  const AttentionCase wide{.query_length = 8, .key_length = 8, .head_dim = 160};
  const AttentionRun run{.device = DeviceKind::cuda,
                         .dtype = DType::bf16,
                         .rounded_to = DType::bf16,
                         .forward = AttentionBackend::flash,
                         .backward = AttentionBackend::flash};
  EXPECT_THROW(run_attention(wide, run), Error);
}

// Run with --gtest_also_run_disabled_tests --gtest_filter='*AttentionRates*'.
TEST(CudaAttentionRates, DISABLED_AttentionRates) {
  if (num_cuda_devices() == 0) {
    GTEST_SKIP() << "no GPU on this machine";
  }
  print_attention_rates();
}

}  // namespace
}  // namespace bloomery::testing
