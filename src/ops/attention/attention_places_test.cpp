// Attention of parts of a sequence: whatever a rank holds, each token gets what the whole sequence
// would give it.
#include <gtest/gtest.h>

#include <cmath>

#include "comm/mesh.h"
#include "harness/device_test.h"
#include "harness/op_harness.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_settings.h"

namespace bloomery::testing {
namespace {

constexpr std::int64_t kHeads = 4, kGroups = 2, kDim = 16, kSequences = 2;
constexpr std::int64_t kQWidth = kHeads * kDim, kKvWidth = kGroups * 2 * kDim;

struct Problem {
  std::int64_t chunk = 1;  // places of a chunk
  int num_ranks = 1;       // each holds chunks r and 2 * num_ranks - 1 - r of every sequence
  bool causal = true, documents = false;
  float dropout = 0;
  std::int64_t window = 0;
  bool biased = false;

  std::int64_t length() const { return chunk * 2 * num_ranks; }
  std::string label() const {
    return concat(num_ranks, " ranks, chunks of ", chunk, causal ? ", causal" : "",
                  documents ? ", documents" : "", dropout > 0 ? ", dropout" : "",
                  window > 0 ? ", window" : "", biased ? ", bias" : "");
  }
};

using Places = std::vector<std::int32_t>;

Places in_order(std::int64_t length) {
  Places places;
  for (std::int64_t i = 0; i < length; ++i) {
    places.push_back(static_cast<std::int32_t>(i));
  }
  return places;
}

Places zigzag(const Problem& p, int rank) {
  Places places;
  for (const std::int64_t chunk : {rank, 2 * p.num_ranks - 1 - rank}) {
    for (std::int64_t i = 0; i < p.chunk; ++i) {
      places.push_back(static_cast<std::int32_t>(chunk * p.chunk + i));
    }
  }
  return places;
}

std::vector<double> random_numbers(const char* name, std::int64_t count) {
  const RandomKey key = random_key(3, name);
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    numbers.push_back(random_normal(key, static_cast<std::uint64_t>(i)));
  }
  return numbers;
}

// Rows of [sequence, length, width] at `places` of every sequence.
std::vector<double> take(const std::vector<double>& whole, std::int64_t length, std::int64_t width,
                         const Places& places) {
  std::vector<double> part;
  for (std::int64_t b = 0; b < kSequences; ++b) {
    for (const std::int32_t place : places) {
      const auto row = whole.begin() + (b * length + place) * width;
      part.insert(part.end(), row, row + width);
    }
  }
  return part;
}

// The contrary: adds the rows of a part to a whole.
void add(std::vector<double>& whole, std::int64_t length, std::int64_t width, const Places& places,
         const std::vector<double>& part) {
  std::size_t from = 0;
  for (std::int64_t b = 0; b < kSequences; ++b) {
    for (const std::int32_t place : places) {
      for (std::int64_t c = 0; c < width; ++c) {
        whole[(b * length + place) * width + c] += part[from++];
      }
    }
  }
}

// Documents of three lengths after one another.
std::pair<Places, Places> document_ranges(const Problem& p, const Places& queries) {
  Places begin, end;
  const std::int64_t length = p.length();
  for (std::int64_t b = 0; b < kSequences; ++b) {
    for (const std::int32_t place : queries) {
      const std::int64_t border = length / 3 + 1, other = length - length / 4;
      begin.push_back(static_cast<std::int32_t>(place < border  ? 0
                                                : place < other ? border
                                                                : other));
      end.push_back(static_cast<std::int32_t>(place < border  ? border
                                              : place < other ? other
                                                              : length));
    }
  }
  return {begin, end};
}

struct Outcome {
  std::vector<double> y, grad_q, grad_kv, grad_bias;
};

constexpr std::int64_t kBuckets = 8, kMaxDistance = 50;

Parameter make_bias(Stream& stream, DType dtype) {
  Parameter bias = make_parameter("bias", Box::whole({kBuckets, kHeads}), {}, false);
  bias.value = to_device(stream, dtype, random_numbers("bias", kBuckets * kHeads))
                   .reshape({kBuckets, kHeads});
  bias.grad = Tensor::empty(stream, accumulation_dtype(dtype), {kBuckets, kHeads});
  return bias;
}

// Attention of queries at some places over keys at others; without key places (`keys_in_order`) as
// if these were a whole sequence.
Outcome attend(Stream& stream, DType dtype, const Problem& p, const Places& queries,
               const Places& keys, bool keys_in_order) {
  Mesh mesh = Mesh::single();
  Tape tape(stream);
  const Batch batch;
  Context context{.stream = stream, .mesh = mesh, .batch = batch, .tape = &tape, .training = true};
  const std::int64_t length = p.length();
  const auto part = [&](const char* name, std::int64_t width, const Places& at) {
    return to_device(stream, dtype,
                     take(random_numbers(name, kSequences * length * width), length, width, at))
        .reshape({kSequences * static_cast<std::int64_t>(at.size()), width});
  };
  const auto to_tensor = [&](const Places& values) {
    return Tensor::from_host(stream, values, {static_cast<std::int64_t>(values.size())});
  };
  AttentionPlaces places{.num_sequences = kSequences,
                         .query_length = static_cast<std::int64_t>(queries.size()),
                         .key_length = static_cast<std::int64_t>(keys.size()),
                         .samples = Tensor::from_host<std::int64_t>(stream, {5, 1 << 20}, {2}),
                         .query_places = to_tensor(queries)};
  if (!keys_in_order) {
    places.key_places = to_tensor(keys);
  }
  if (p.documents) {
    const auto [begin, end] = document_ranges(p, queries);
    places.key_begin = to_tensor(begin);
    places.key_end = to_tensor(end);
  }
  Parameter bias = make_bias(stream, dtype);
  const Value q = tape.value(part("q", kQWidth, queries)),
              kv = tape.value(part("kv", kKvWidth, keys));
  const Value y =
      attention(context, q, kv, places,
                {.num_heads = kHeads,
                 .num_groups = kGroups,
                 .head_dim = kDim,
                 .scale = 0.25f,
                 .causal = p.causal,
                 .window = p.window,
                 .bias = {.table = p.biased ? &bias : nullptr, .max_distance = kMaxDistance},
                 .dropout = {p.dropout, 77},
                 .first_head = 3});
  tape.set_grad(y.slot, part("dy", kQWidth, queries));
  tape.backward();
  return {to_doubles(stream, y.data), to_doubles(stream, q.slot->grad),
          to_doubles(stream, kv.slot->grad),
          p.biased ? to_doubles(stream, bias.grad) : std::vector<double>(kBuckets * kHeads)};
}

// What all ranks compute, put together: keys and values are gathered in the order of the ranks.
Outcome on_ranks(Stream& stream, DType dtype, const Problem& p) {
  Places gathered;
  for (int rank = 0; rank < p.num_ranks; ++rank) {
    const Places own = zigzag(p, rank);
    gathered.insert(gathered.end(), own.begin(), own.end());
  }
  const std::int64_t length = p.length();
  const std::vector<double> queries(kSequences * length * kQWidth);
  Outcome whole{queries, queries, std::vector<double>(kSequences * length * kKvWidth),
                std::vector<double>(kBuckets * kHeads)};
  for (int rank = 0; rank < p.num_ranks; ++rank) {
    const Places own = zigzag(p, rank);
    const Outcome part = attend(stream, dtype, p, own, gathered, false);
    add(whole.y, length, kQWidth, own, part.y);
    add(whole.grad_q, length, kQWidth, own, part.grad_q);
    add(whole.grad_kv, length, kKvWidth, gathered, part.grad_kv);
    for (std::size_t i = 0; i < part.grad_bias.size(); ++i) {
      whole.grad_bias[i] += part.grad_bias[i];
    }
  }
  return whole;
}

void expect_near(const Outcome& actual, const Outcome& expected, double tolerance,
                 const std::string& label) {
  EXPECT_LE(relative_error(actual.y, expected.y), tolerance) << label;
  EXPECT_LE(relative_error(actual.grad_q, expected.grad_q), tolerance) << label;
  EXPECT_LE(relative_error(actual.grad_kv, expected.grad_kv), tolerance) << label;
  EXPECT_LE(relative_error(actual.grad_bias, expected.grad_bias), tolerance) << label;
}

// Chunks that are multiples of the 32 keys which dropout draws for at once, and others.
std::vector<Problem> problems() {
  std::vector<Problem> list;
  for (const int num_ranks : {1, 2, 4}) {
    for (const std::int64_t chunk : {3, 19, 32}) {
      for (const bool documents : {false, true}) {
        for (const float dropout : {0.0f, 0.25f}) {
          list.push_back({chunk, num_ranks, true, documents, dropout});
        }
      }
    }
    list.push_back({19, num_ranks, false, true, 0.25f});
    list.push_back({19, num_ranks, true, true, 0.25f, 17});
    list.push_back({32, num_ranks, true, false, 0, 40, true});
    list.push_back({19, num_ranks, false, true, 0, 0, true});
  }
  return list;
}

class AttentionPlacesTest : public DeviceTest {};

TEST_P(AttentionPlacesTest, ZigzagPartsEqualTheWhole) {
  for (const Problem& p : problems()) {
    Machine reference(DeviceKind::cpu), machine(GetParam());
    const Places all = in_order(p.length());
    for (const DType dtype : {DType::fp64, DType::fp32, DType::bf16}) {
      if (dtype == DType::fp64 && GetParam() == DeviceKind::cuda) {
        continue;
      }
      reference.device.service<AttentionSettings>().tiles = AttentionTiles::vectors;
      const Outcome whole = attend(reference.stream, dtype, p, all, all, true);
      const double tolerance = dtype == DType::fp64 ? 1e-13 : dtype == DType::fp32 ? 1e-6 : 8e-3;
      for (const AttentionTiles tiles : {AttentionTiles::vectors, AttentionTiles::emulated}) {
        machine.device.service<AttentionSettings>().tiles = tiles;
        expect_near(on_ranks(machine.stream, dtype, p), whole, tolerance,
                    concat(p.label(), ", ", dtype));
        if (dtype != DType::bf16 || GetParam() == DeviceKind::cuda) {
          break;
        }
      }
    }
  }
}

// Any order of the keys, down to single ones that neither tiles nor draws of 32 can use.
TEST_P(AttentionPlacesTest, TheOrderOfKeysDoesNotMatter) {
  for (const float dropout : {0.0f, 0.25f}) {
    const Problem p{.chunk = 75, .dropout = dropout};
    Places keys;
    for (std::int64_t i = 0; i < p.length(); ++i) {
      keys.push_back(static_cast<std::int32_t>(i * 7 % p.length()));
    }
    Machine machine(GetParam());
    const Places all = in_order(p.length());
    const Outcome whole = attend(machine.stream, DType::fp32, p, all, all, true);
    Outcome mixed = attend(machine.stream, DType::fp32, p, all, keys, false);
    std::vector<double> grad_kv(mixed.grad_kv.size());
    add(grad_kv, p.length(), kKvWidth, keys, mixed.grad_kv);
    mixed.grad_kv = grad_kv;
    expect_near(mixed, whole, 1e-6, p.label());
  }
}

// Coordinates by token: places that differ between sequences, and a sample for each token.
TEST_P(AttentionPlacesTest, CoordinatesMayBeGivenByToken) {
  constexpr std::int64_t kLength = 70;
  Machine machine(GetParam());
  machine.device.service<AttentionSettings>().backend = AttentionBackend::simple;
  Mesh mesh = Mesh::single();
  Batch batch;
  batch.num_sequences = kSequences;
  batch.length = kLength;
  batch.samples = Tensor::from_host<std::int64_t>(machine.stream, {5, 9}, {2});
  batch.places = Tensor::from_host(machine.stream, in_order(kLength), {kLength});
  Context context{.stream = machine.stream, .mesh = mesh, .batch = batch, .training = true};
  const AttentionOptions options{.num_heads = kHeads,
                                 .num_groups = kGroups,
                                 .head_dim = kDim,
                                 .dropout = {.probability = 0.3f, .key = 4}};
  const std::int64_t width = kQWidth + kKvWidth;
  const Value qkv{
      to_device(machine.stream, DType::fp32, random_numbers("qkv", kSequences * kLength * width))
          .reshape({kSequences * kLength, width}),
      nullptr};
  const auto compact = to_doubles(machine.stream, attention(context, qkv, options).data);
  Places places = in_order(kLength);
  places.insert(places.end(), places.begin(), places.end());
  std::vector<std::int64_t> samples(kLength, 5);
  samples.resize(kSequences * kLength, 9);
  batch.places = Tensor::from_host(machine.stream, places, {kSequences * kLength});
  EXPECT_EQ(to_doubles(machine.stream, attention(context, qkv, options).data), compact);
  batch.samples = Tensor::from_host(machine.stream, samples, {kSequences * kLength});
  EXPECT_EQ(to_doubles(machine.stream, attention(context, qkv, options).data), compact);
  AttentionPlaces by_token = places_of(batch);
  by_token.key_places = batch.places;
  EXPECT_LE(
      relative_error(to_doubles(machine.stream, attention(context, qkv, by_token, options).data),
                     compact),
      1e-6);
}

TEST(AttentionPlaces, MistakesAreNamed) {
  Machine machine(DeviceKind::cpu);
  Stream& stream = machine.stream;
  Mesh mesh = Mesh::single();
  Batch batch;
  batch.num_sequences = 1;
  batch.length = 4;
  Context context{.stream = stream, .mesh = mesh, .batch = batch};
  const Value q{Tensor::zeros(stream, DType::fp32, {4, 8}), nullptr};
  const Value kv{Tensor::zeros(stream, DType::fp32, {6, 16}), nullptr};
  const AttentionOptions options{.head_dim = 8};
  AttentionPlaces places = places_of(batch);
  EXPECT_THROW(attention(context, q, kv, places, options), Error);  // six keys
  places.key_length = 6;
  EXPECT_NO_THROW(attention(context, q, kv, places, options));
  EXPECT_THROW(attention(context, kv, places, options), Error);  // one buffer, two lengths
  places.key_places = Tensor::zeros(stream, DType::int32, {6});
  EXPECT_THROW(attention(context, q, kv, places, options), Error);  // no places of queries
  places.query_places = Tensor::zeros(stream, DType::int32, {4});
  EXPECT_NO_THROW(attention(context, q, kv, places, options));
  places.key_places = Tensor::zeros(stream, DType::int32, {5});
  EXPECT_THROW(attention(context, q, kv, places, options), Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionPlacesTest, every_device(), device_label);

}  // namespace
}  // namespace bloomery::testing
