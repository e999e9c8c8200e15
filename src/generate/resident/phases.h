// What the resident kernel does, phase by phase: numbers and addresses of device memory. A phase
// waits for flagged packets of the one before (flagged_packets.cuh) where these are all it needs,
// else until all blocks have met.
#pragma once

#include <cstdint>

#include "ops/activation/activation_kind.h"
#include "ops/cache/cache.h"
#include "tensor/quantized.h"

namespace bloomery::resident {

// x = stream + pending, rounded; y = norm(x). Block 0 writes both, and every block keeps x.
struct NormInput {
  const void *stream = nullptr, *pending = nullptr;  // [rows, k]; no pending: x is the stream
  const void *gain = nullptr, *bias = nullptr;
  void *sum = nullptr, *y = nullptr;
  float epsilon = 0;
  bool rms = false, one_plus_gain = false;
  bool stream_is_kept = false;  // it is the x of the norm before
};

// One new token of each row attends to its sequence, whose keys are divided among blocks; the first
// of these gets what the others found, and has the result.
struct Attention {
  const void* qkv = nullptr;              // [rows, groups, heads per group + 2, head_dim]
  const std::uint32_t* words = nullptr;   // of qkv, if it comes so
  void* cache = nullptr;                  // [slots, capacity, groups, 2, head_dim]
  void* out = nullptr;                    // [rows, heads, head_dim]
  std::uint32_t* result_words = nullptr;  // of out, if the next phase takes it so
};

// Of a channel, what a split found: sum, maximum, total, phase. Read and written whole.
struct Partial {
  std::uint32_t words[4];
};

// The same for all attention of a launch: its heads, where rows stand, by what their heads turn,
// and how keys are divided.
struct Places {
  CachePlaces cache;
  std::int64_t capacity = 0;
  int groups = 1, heads_per_group = 1, head_dim = 1;
  float scale = 1;
  const double* frequencies = nullptr;
  const std::int32_t* positions = nullptr;
  int pairs = 0;  // of channels that turn
  float magnitude = 1;
  bool interleaved = false;
  int splits = 1;
  void* partials = nullptr;  // Partial [rows, heads, splits, head_dim]

  bool operator==(const Places&) const = default;
};

// d [rows, n] = activation(input [rows, k] times b [n, k] transposed, + bias), and where `gated` is
// given, gated [rows, n / 2] = gate(first half of d) * second half.
struct Product {
  bool normalised = false;  // the input is that of `norm`; else a
  bool fp32_result = false;
  Activation gate = Activation::none, activation = Activation::none;
  const void* a = nullptr;
  NormInput norm;
  // Of int8 and fp8 b has codes, a byte each, and every row a scale.
  QuantizedFormat format = QuantizedFormat::none;
  const void *b = nullptr, *scales = nullptr, *bias = nullptr;
  void *d = nullptr, *gated = nullptr;
  // Words of a, of the norm's pending part, and of the result (gated, if that is given), where they
  // travel so.
  const std::uint32_t* input_words = nullptr;
  std::uint32_t* words = nullptr;
  int n = 0, k = 0;
  int row_bytes = 0;  // of b
  // Every block has block_rows rows of b (of each half, where there are two), the first `extra`
  // blocks one more.
  int block_rows = 0, extra = 0;
  int tile_rows = 0;  // that are copied at a time
  int chunk = 0;      // and columns of them
};

struct alignas(16) Phase {
  bool is_product = false;
  bool meets = false;       // blocks wait for each other in front of it
  bool meets_next = false;  // and in front of the next one
  Product product;
  Attention attention;
};

// Keys of a sequence are divided so that blocks have this many, as far as there are splits.
inline constexpr int kFewestKeys = 64;
inline constexpr int kMaxRows = 4, kMaxHeadDim = 256;
inline constexpr int kLanes = 32;
inline constexpr int kWarps = 8;  // that compute, in a block: more would have too few registers
inline constexpr int kPackElements = 8;          // of 16 bits, in 16 bytes
inline constexpr int kMaxInput = 48 * 1024;      // rows x k, in shared memory
inline constexpr int kTileRows = 16;             // of b, at most: those of a tensor core's operand
inline constexpr int kMaxChunk = 768;            // columns of a tile of 16-bit numbers
inline constexpr int kStepColumns = 32;          // that a warp takes at a time
inline constexpr int kMaxWords = 4 * kMaxInput;  // of a phase's results
// Sums that a block keeps of rows of b and of the input.
inline constexpr int kKeptSums = 256, kMostKeptSums = 576;

// Bytes between the rows of a tile in shared memory: those that a warp reads together lie in
// different banks.
constexpr int tile_pitch(QuantizedFormat format) {
  return 2 * kMaxChunk + (format == QuantizedFormat::none ? 64 : 32);
}

}  // namespace bloomery::resident
