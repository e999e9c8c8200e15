#include "ops/cache/cached_attention.h"

#include <cmath>

#include "comm/mesh.h"
#include "harness/device_test.h"

namespace bloomery::testing {
namespace {

// Sequences of unequal length, fed in pieces: row r of `pieces` is a pass, column s the new tokens
// of sequence s.
struct Problem {
  std::int64_t num_groups, heads_per_group, head_dim;
  std::vector<std::vector<std::int32_t>> pieces;
  std::int64_t window = 0;
  bool biased = false;
  bool in_pages = false;

  AttentionOptions options(Parameter& bias) const {
    return {.num_heads = num_groups * heads_per_group,
            .num_groups = num_groups,
            .head_dim = head_dim,
            .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
            .window = window,
            .bias = {.table = biased ? &bias : nullptr, .max_distance = 60}};
  }
  // Of 12 buckets, numbers that every dtype holds.
  Parameter bias(Stream& stream, DType dtype) const {
    const std::int64_t heads = num_groups * heads_per_group;
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < 12 * heads; ++i) {
      numbers.push_back(static_cast<double>(i * i % 29) / 8);
    }
    Parameter table = make_parameter("bias", Box::whole({12, heads}), {}, false);
    table.value = to_device(stream, dtype, numbers).reshape({12, heads});
    return table;
  }
  std::int64_t width() const { return num_groups * (heads_per_group + 2) * head_dim; }
  std::int64_t out_width() const { return num_groups * heads_per_group * head_dim; }
  std::int64_t num_sequences() const { return static_cast<std::int64_t>(pieces[0].size()); }
  std::int64_t length(std::size_t sequence) const {
    std::int64_t total = 0;
    for (const auto& piece : pieces) {
      total += piece[sequence];
    }
    return total;
  }
};

using Rows = std::vector<std::vector<double>>;  // by sequence

Rows random_sequences(const Problem& p) {
  Rows rows;
  for (std::size_t s = 0; s < p.pieces[0].size(); ++s) {
    const RandomKey key = random_key(5, concat("qkv of ", s));
    std::vector<double>& row = rows.emplace_back();
    for (std::int64_t i = 0; i < p.length(s) * p.width(); ++i) {
      row.push_back(random_normal(key, static_cast<std::uint64_t>(i)));
    }
  }
  return rows;
}

std::vector<double> rounded(Stream& stream, DType dtype, const std::vector<double>& numbers) {
  return to_doubles(stream, to_device(stream, dtype, numbers));
}

// Attention over one whole sequence, in fp64 on the CPU.
std::vector<double> whole(const Problem& p, const std::vector<double>& qkv) {
  Machine machine(DeviceKind::cpu);
  Mesh mesh(MeshDegrees{}, make_self_communicator());
  Batch batch;
  batch.num_sequences = 1;
  batch.length = static_cast<std::int64_t>(qkv.size()) / p.width();
  Context context{machine.stream, mesh, batch};
  const Tensor input = to_device(machine.stream, DType::fp64, qkv);
  Parameter bias = p.bias(machine.stream, DType::fp64);
  return to_doubles(
      machine.stream,
      attention(context, {input.reshape({batch.length, p.width()}), {}}, p.options(bias)).data);
}

// Of pages each sequence has every n-th of n sequences, from the back.
Cache make_cache(Stream& stream, const Problem& p, std::int64_t capacity) {
  const auto sequences = static_cast<std::int32_t>(p.num_sequences());
  const auto each = static_cast<std::int32_t>(cache_pages(capacity));
  Cache cache(stream, sequences, capacity, p.in_pages ? sequences * each : 0);
  for (std::int32_t s = 0; p.in_pages && s < sequences; ++s) {
    std::vector<std::int32_t> pages;
    for (std::int32_t i = 0; i < each; ++i) {
      pages.push_back((each - 1 - i) * sequences + s);
    }
    cache.set_pages(s, pages);
  }
  return cache;
}

// All outputs when the sequences are fed in pieces. Padding must not matter: it is large in the
// first pass, whose keys and values go through attention() with probability 0, and NaN in the
// others.
Rows in_pieces(Machine& machine, const Problem& p, DType dtype, const Rows& sequences) {
  Stream& stream = machine.stream;
  Mesh mesh(MeshDegrees{}, make_self_communicator());
  std::int64_t capacity = 0;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    capacity = std::max(capacity, p.length(s));
  }
  Cache cache = make_cache(stream, p, capacity);
  Parameter bias = p.bias(stream, dtype);
  Rows results(sequences.size());
  std::vector<std::int64_t> fed(sequences.size(), 0);
  for (const std::vector<std::int32_t>& counts : p.pieces) {
    Batch batch;
    batch.num_sequences = p.num_sequences();
    batch.length = *std::max_element(counts.begin(), counts.end());
    std::vector<double> rows(
        batch.num_tokens() * p.width(),
        cache.length(0) + cache.length(p.num_sequences() - 1) == 0 ? 1e4 : std::nan(""));
    for (std::size_t s = 0; s < counts.size(); ++s) {
      std::copy_n(sequences[s].begin() + fed[s] * p.width(), counts[s] * p.width(),
                  rows.begin() + static_cast<std::int64_t>(s) * batch.length * p.width());
    }
    cache.begin(counts);
    Context context{stream, mesh, batch};
    context.cache = &cache;
    const Tensor input = to_device(stream, dtype, rows).reshape({batch.num_tokens(), p.width()});
    const std::vector<double> out =
        to_doubles(stream, cached_attention(context, {input, {}}, 3, p.options(bias)).data);
    for (std::size_t s = 0; s < counts.size(); ++s) {
      const auto first = out.begin() + static_cast<std::int64_t>(s) * batch.length * p.out_width();
      results[s].insert(results[s].end(), first, first + counts[s] * p.out_width());
      fed[s] += counts[s];
    }
  }
  return results;
}

double error(const std::vector<double>& actual, const std::vector<double>& expected) {
  double difference = 0, size = 0;
  EXPECT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference = std::max(difference, std::abs(actual[i] - expected[i]));
    EXPECT_FALSE(std::isnan(actual[i])) << i;
    size = std::max(size, std::abs(expected[i]));
  }
  return difference / size;
}

class CachedAttentionTest : public DeviceTest {};

TEST_P(CachedAttentionTest, EqualsAttentionOverTheWhole) {
  std::vector<Problem> problems = {
      {1, 1, 64, {{5}, {1}, {1}, {1}}},
      {4, 1, 16, {{3, 7, 1}, {1, 1, 1}, {1, 1, 1}, {1, 0, 1}}},  // unequal, one pauses
      {2, 3, 24, {{0, 4}, {2, 1}, {5, 3}, {1, 1}}},              // grouped, one starts late
      {2, 4, 128, {{300, 200}, {1, 1}, {40, 300}, {1, 1}}},      // more than one tile of keys
      {1, 2, 5, {{2, 9}, {1, 1}, {1, 1}}},                       // nothing is aligned
      {1, 1, 320, {{4}, {3}, {1}}},                              // more channels than threads
      {3, 2, 40, {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}}},
      // one token of each sequence, whose keys several blocks of a GPU share
      {2, 1, 64, {{700, 300}, {1, 1}, {1, 0}, {1, 1}}},
      {1, 6, 128, {{1000}, {1}, {1}}},
      {2, 3, 32, {{63, 1, 200}, {1, 1, 1}, {1, 1, 1}}},
      {1, 20, 64, {{130, 31}, {1, 1}, {1, 0}, {1, 1}}},  // more heads than a block takes
      // pieces of one long text
      {2, 2, 64, {{70}, {130}, {31}, {200}, {1}, {33}}},
      {1, 3, 40, {{5}, {64}, {1}, {90}}},
      {2, 1, 128, {{300}, {257}}, 100},
      // windows, shorter and longer than what there is
      {4, 1, 16, {{3, 7, 1}, {1, 1, 1}, {2, 5, 1}, {1, 0, 1}}, 4},
      {2, 1, 64, {{700, 300}, {1, 1}, {1, 0}, {1, 1}}, 400},
      {2, 3, 24, {{300, 4}, {300, 1}, {1, 3}}, 290},
      {1, 1, 5, {{4}, {3}, {1}}, 1},
      // a relative bias, and both
      {2, 1, 64, {{300, 20}, {1, 1}, {3, 70}, {1, 1}}, 0, true},
      {2, 3, 24, {{5, 4}, {1, 90}, {1, 1}}, 0, true},
      {1, 2, 32, {{200}, {1}, {1}}, 150, true},
  };
  for (std::size_t i = 0, count = problems.size(); i < count; ++i) {
    problems.push_back(problems[i]);
    problems.back().in_pages = true;
  }
  for (const Problem& p : problems) {
    for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
      Machine machine(GetParam());
      Rows sequences = random_sequences(p);
      for (std::vector<double>& sequence : sequences) {
        sequence = rounded(machine.stream, dtype, sequence);
      }
      const Rows actual = in_pieces(machine, p, dtype, sequences);
      const double tolerance = dtype == DType::fp32 ? 2e-6 : dtype == DType::fp16 ? 2e-3 : 1.6e-2;
      for (std::size_t s = 0; s < sequences.size(); ++s) {
        EXPECT_LE(error(actual[s], whole(p, sequences[s])), tolerance)
            << name(dtype) << ", sequence " << s << ", head_dim " << p.head_dim
            << (p.in_pages ? ", in pages" : "");
      }
    }
  }
}

TEST_P(CachedAttentionTest, SameBitsForAnyNumberOfThreads) {
  const Problem p{4, 2, 32, {{70, 3}, {1, 1}, {2, 5}}};
  Machine one(GetParam(), 1), four(GetParam(), 4);
  const Rows sequences = random_sequences(p);
  EXPECT_EQ(in_pieces(one, p, DType::fp32, sequences), in_pieces(four, p, DType::fp32, sequences));
}

TEST_P(CachedAttentionTest, RefusesWhatItCannotContinue) {
  Machine machine(GetParam());
  Mesh mesh(MeshDegrees{}, make_self_communicator());
  Batch batch;
  batch.num_sequences = 2;
  batch.length = 3;
  Cache cache(machine.stream, 2, 8);
  cache.begin(std::vector<std::int32_t>{3, 2});
  const Value qkv{Tensor::zeros(machine.stream, DType::fp32, {6, 12}), {}};
  Context context{machine.stream, mesh, batch};
  const AttentionOptions options{.num_heads = 1, .num_groups = 1, .head_dim = 4};
  EXPECT_THROW(cached_attention(context, qkv, 0, options), Error);  // no cache
  context.cache = &cache;
  EXPECT_NO_THROW(cached_attention(context, qkv, 0, options));
  AttentionOptions both_ways = options;
  both_ways.causal = false;
  EXPECT_THROW(cached_attention(context, qkv, 0, both_ways), Error);
  batch.length = 2;
  EXPECT_THROW(cached_attention(context, qkv, 0, options), Error);
  batch.length = 3;
  Tape tape(machine.stream);
  context.tape = &tape;
  EXPECT_THROW(cached_attention(context, qkv, 0, options), Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, CachedAttentionTest, every_device(), device_label);

}  // namespace
}  // namespace bloomery::testing
