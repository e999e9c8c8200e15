#include "ops/cache/cached_cross_attention.h"

#include <cmath>

#include "comm/mesh.h"
#include "harness/device_test.h"

namespace bloomery::testing {
namespace {

struct Problem {
  std::int64_t num_groups, heads_per_group, head_dim;
  std::vector<std::int32_t> text_lengths;  // by sequence

  AttentionOptions options() const {
    return {.num_heads = num_groups * heads_per_group,
            .num_groups = num_groups,
            .head_dim = head_dim,
            .scale = 0.7f / std::sqrt(static_cast<float>(head_dim)),
            .causal = false};
  }
  std::int64_t places() const {
    return *std::max_element(text_lengths.begin(), text_lengths.end()) + 2;  // with padding
  }
  std::int64_t width() const { return num_groups * heads_per_group * head_dim; }
  std::int64_t kv_width() const { return num_groups * 2 * head_dim; }
};

std::vector<double> random_numbers(const std::string& name, std::int64_t count) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    numbers.push_back(random_normal(random_key(9, name), static_cast<std::uint64_t>(i)));
  }
  return numbers;
}

// Queries of one sequence against the keys and values of its text, by the ordinary op in fp64.
std::vector<double> whole(const Problem& p, const std::vector<double>& q,
                          const std::vector<double>& kv) {
  Machine machine(DeviceKind::cpu);
  Mesh mesh = Mesh::single();
  Batch batch;
  Context context{machine.stream, mesh, batch};
  const auto rows = [&](const std::vector<double>& numbers, std::int64_t width) {
    const auto count = static_cast<std::int64_t>(numbers.size()) / width;
    return Value{to_device(machine.stream, DType::fp64, numbers).reshape({count, width}), {}};
  };
  const Value queries = rows(q, p.width()), keys = rows(kv, p.kv_width());
  const AttentionPlaces places{
      .num_sequences = 1, .query_length = queries.shape()[0], .key_length = keys.shape()[0]};
  return to_doubles(machine.stream, attention(context, queries, keys, places, p.options()).data);
}

class CachedCrossAttentionTest : public DeviceTest {};

// After the first pass the second sequence takes the place of the first, which is copied to a
// third.
void check_problem(DeviceKind kind, const Problem& p, DType dtype, double tolerance) {
  Machine machine(kind);
  Stream& stream = machine.stream;
  Mesh mesh = Mesh::single();
  const auto sequences = static_cast<std::int64_t>(p.text_lengths.size());
  Cache cache(stream, sequences + 1, 8);
  std::vector<std::int64_t> used;
  for (std::int64_t i = 0; i < sequences; ++i) {
    used.push_back(i);
  }
  cache.select(used);
  cache.set_texts(p.text_lengths, p.places());
  std::vector<double> kv = to_doubles(
      stream,
      to_device(stream, dtype, random_numbers("kv", sequences * p.places() * p.kv_width())));
  std::vector<std::vector<double>> texts;
  for (std::int64_t i = 0; i < sequences; ++i) {  // padding must not be seen
    const auto begin = kv.begin() + i * p.places() * p.kv_width();
    const auto end = begin + p.text_lengths[static_cast<std::size_t>(i)] * p.kv_width();
    texts.emplace_back(begin, end);
    std::fill(end, begin + p.places() * p.kv_width(), std::nan(""));
  }
  const Tensor kept = to_device(stream, dtype, kv).reshape({sequences * p.places(), p.kv_width()});
  const auto pass = [&](const std::vector<std::int32_t>& counts,
                        const std::vector<std::size_t>& text_of, const Tensor& fresh) {
    Batch batch;
    batch.num_sequences = static_cast<std::int64_t>(counts.size());
    batch.length = *std::max_element(counts.begin(), counts.end());
    const std::vector<double> q = to_doubles(
        stream, to_device(stream, dtype, random_numbers("q", batch.num_tokens() * p.width())));
    cache.begin(counts);
    Context context{stream, mesh, batch};
    context.cache = &cache;
    const Value queries{to_device(stream, dtype, q).reshape({batch.num_tokens(), p.width()}), {}};
    const std::vector<double> out =
        to_doubles(stream, cached_cross_attention(context, queries, fresh, 5, p.options()).data);
    for (std::size_t s = 0; s < counts.size(); ++s) {
      const auto row = static_cast<std::int64_t>(s) * batch.length * p.width();
      const auto own = counts[s] * p.width();
      const std::vector<double> expected =
          whole(p, {q.begin() + row, q.begin() + row + own}, texts[text_of[s]]);
      for (std::int64_t i = 0; i < batch.length * p.width(); ++i) {
        const double wanted = i < own ? expected[static_cast<std::size_t>(i)] : 0.0;
        ASSERT_NEAR(out[static_cast<std::size_t>(row + i)], wanted, tolerance)
            << name(dtype) << ", sequence " << s << ", head_dim " << p.head_dim;
      }
    }
  };
  pass({2, 1}, {0, 1}, kept);
  cache.select(std::vector<std::int64_t>{1, 0, 0});
  pass({1, 0, 1}, {1, 0, 0}, {});
}

TEST_P(CachedCrossAttentionTest, EqualsAttentionToTheTextOfEachSequence) {
  for (const Problem& p : {Problem{1, 1, 64, {5, 1}}, Problem{2, 3, 24, {9, 300}},
                           Problem{1, 2, 5, {33, 32}}, Problem{2, 1, 320, {7, 12}}}) {
    check_problem(GetParam(), p, DType::fp32, 5e-6);
    check_problem(GetParam(), p, DType::bf16, 4e-2);
    check_problem(GetParam(), p, DType::fp16, 5e-3);
  }
}

TEST_P(CachedCrossAttentionTest, RefusesWhatWasNotKept) {
  Machine machine(GetParam());
  Mesh mesh = Mesh::single();
  Cache cache(machine.stream, 1, 4);
  cache.set_texts(std::vector<std::int32_t>{3}, 3);
  cache.begin(std::vector<std::int32_t>{1});
  Batch batch;
  batch.num_sequences = batch.length = 1;
  Context context{machine.stream, mesh, batch};
  context.cache = &cache;
  const Value q{Tensor::zeros(machine.stream, DType::fp32, {1, 8}), {}};
  EXPECT_THROW(cached_cross_attention(context, q, {}, 0, {.head_dim = 8}), Error);
  const Tensor short_text = Tensor::zeros(machine.stream, DType::fp32, {2, 16});
  EXPECT_THROW(cached_cross_attention(context, q, short_text, 0, {.head_dim = 8}), Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, CachedCrossAttentionTest, every_device(), device_label);

}  // namespace
}  // namespace bloomery::testing
