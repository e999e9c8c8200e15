// Which keys each query sees, found one by one: a key's value is changed, and the outputs that
// change are those of the queries that see it. Compared with the definition.
#include <gtest/gtest.h>

#include "comm/mesh.h"
#include "harness/device_test.h"
#include "ops/attention/attention.h"

namespace bloomery::testing {
namespace {

constexpr std::int64_t kLength = 83, kDim = 8;

struct Masking {
  std::int64_t window = 0;
  bool documents = false;
  std::int64_t keys = kLength;  // with fewer queries at the end: the last `kLength` places
};

std::int64_t document_begin(std::int64_t place) { return place < 20 ? 0 : place < 61 ? 20 : 61; }

bool visible(const Masking& m, std::int64_t query, std::int64_t key) {
  const std::int64_t place = query + m.keys - kLength;
  return key <= place && (m.window == 0 || place - key < m.window) &&
         (!m.documents || key >= document_begin(place));
}

// Every query gives the same score to all keys, so that its output is the mean of the values it
// sees: of value 1 at `key` and 0 elsewhere, not zero where it sees the key.
std::vector<bool> seen_by(Machine& machine, const Masking& m, DType dtype, std::int64_t key) {
  Stream& stream = machine.stream;
  Mesh mesh = Mesh::single();
  const Batch batch;
  Context context{.stream = stream, .mesh = mesh, .batch = batch};
  AttentionPlaces places{.num_sequences = 1, .query_length = kLength, .key_length = m.keys};
  if (m.documents) {
    std::vector<std::int32_t> begin, end(kLength, static_cast<std::int32_t>(m.keys));
    for (std::int64_t q = 0; q < kLength; ++q) {
      begin.push_back(static_cast<std::int32_t>(document_begin(q + m.keys - kLength)));
    }
    places.key_begin = Tensor::from_host(stream, begin, {kLength});
    places.key_end = Tensor::from_host(stream, end, {kLength});
  }
  std::vector<double> kv(static_cast<std::size_t>(m.keys * 2 * kDim), 0);
  std::fill_n(kv.begin() + (key * 2 + 1) * kDim, kDim, 1);
  const Value q{Tensor::zeros(stream, dtype, {kLength, kDim}), nullptr};
  const Value keys{to_device(stream, dtype, kv).reshape({m.keys, 2 * kDim}), nullptr};
  const Tensor out =
      attention(context, q, keys, places, {.head_dim = kDim, .window = m.window}).data;
  const std::vector<double> numbers = to_doubles(stream, out);
  std::vector<bool> seen;
  for (std::int64_t i = 0; i < kLength; ++i) {
    seen.push_back(numbers[static_cast<std::size_t>(i * kDim)] > 0);
  }
  return seen;
}

class AttentionWindowTest : public DeviceTest {};

TEST_P(AttentionWindowTest, KeysAreSeenAsDefined) {
  Machine machine(GetParam());
  for (const Masking& m :
       {Masking{}, Masking{1}, Masking{2}, Masking{31}, Masking{64}, Masking{82}, Masking{83},
        Masking{1000}, Masking{7, true}, Masking{30, true}, Masking{40, false, 140}}) {
    for (const DType dtype : {DType::fp32, DType::bf16}) {
      for (std::int64_t key = 0; key < m.keys; ++key) {
        const std::vector<bool> seen = seen_by(machine, m, dtype, key);
        for (std::int64_t query = 0; query < kLength; ++query) {
          ASSERT_EQ(seen[static_cast<std::size_t>(query)], visible(m, query, key))
              << "window " << m.window << ", query " << query << ", key " << key << ", "
              << name(dtype);
        }
      }
    }
  }
}

TEST(AttentionWindow, OnlyCausalAttentionHasOne) {
  Machine machine(DeviceKind::cpu);
  Mesh mesh = Mesh::single();
  Batch batch;
  batch.num_sequences = 1;
  batch.length = 4;
  Context context{.stream = machine.stream, .mesh = mesh, .batch = batch};
  const Value qkv{Tensor::zeros(machine.stream, DType::fp32, {4, 24}), nullptr};
  EXPECT_THROW(attention(context, qkv, {.head_dim = 8, .causal = false, .window = 2}), Error);
  EXPECT_THROW(attention(context, qkv, {.head_dim = 8, .window = -1}), Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionWindowTest, every_device(), device_label);

}  // namespace
}  // namespace bloomery::testing
