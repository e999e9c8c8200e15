#include "nn/attention.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "nn/cross_attention.h"
#include "nn/layer_case.h"

namespace bloomery::testing {
namespace {

constexpr std::size_t kSequences = 2, kLength = 6, kHidden = 10, kHeadDim = 4, kSource = 5;
constexpr std::size_t kTokens = kSequences * kLength;

struct Case {
  const char* name;
  std::int64_t heads = 3, groups = 3;
  bool causal = true;
  bool documents = false;  // the second sequence has two of them
  std::int64_t window = 0;
  double rotary = 0;  // the part of a head's channels that turns
  bool interleaved = false;
  bool head_norm = false;
  bool bias = true;
};

ModelOptions options_of(const Case& c) {
  ModelOptions o;
  o.hidden_size = kHidden;
  o.num_layers = 1;
  o.attention = {.num_heads = c.heads,
                 .num_groups = c.groups,
                 .head_dim = kHeadDim,
                 .qkv_bias = c.bias,
                 .output_bias = c.bias,
                 .causal = c.causal,
                 .window = c.window,
                 .head_norm = c.head_norm};
  o.positions.rotary = c.rotary > 0;
  o.positions.rotary_fraction = c.rotary;
  o.positions.rotary_base = 100;
  o.positions.rotary_interleaved = c.interleaved;
  o.norm.epsilon = 0.125f;
  return o;
}

std::int64_t begin_of(std::size_t token) { return token >= kLength + 2 ? 2 : 0; }
std::int64_t end_of(std::size_t token) {
  return token >= kLength && token < kLength + 2 ? 2 : std::int64_t{kLength};
}

bool sees(const Case& c, std::size_t query, std::size_t key) {
  const auto q = static_cast<std::int64_t>(query % kLength);
  const auto k = static_cast<std::int64_t>(key % kLength);
  return query / kLength == key / kLength && (!c.causal || k <= q) &&
         (c.window == 0 || q - k < c.window) &&
         (!c.documents || (k >= begin_of(query) && k < end_of(query)));
}

// The channels of one head of a token.
using Channels = std::array<double, kHeadDim>;

Channels turned(const Case& c, Channels x, std::size_t position) {
  const auto dim = static_cast<std::size_t>(c.rotary * kHeadDim);
  for (std::size_t i = 0; i < dim / 2; ++i) {
    const std::size_t a = c.interleaved ? 2 * i : i, b = c.interleaved ? 2 * i + 1 : i + dim / 2;
    const double angle = static_cast<double>(position) *
                         std::pow(100.0, -2.0 * static_cast<double>(i) / static_cast<double>(dim));
    const double x0 = x[a], x1 = x[b];
    x[a] = x0 * std::cos(angle) - x1 * std::sin(angle);
    x[b] = x0 * std::sin(angle) + x1 * std::cos(angle);
  }
  return x;
}

// `slot`: a query head of a group, behind them the key and the value.
Channels head_of(const Case& c, const NamedNumbers& in, const Numbers& qkv, std::size_t token,
                 std::size_t group, std::size_t slot) {
  const auto queries = as_size(c.heads / c.groups), slots = queries + 2;
  Channels head;
  for (std::size_t i = 0; i < kHeadDim; ++i) {
    head[i] = qkv[((token * as_size(c.groups) + group) * slots + slot) * kHeadDim + i];
  }
  if (slot > queries) {
    return head;
  }
  if (c.head_norm) {
    const char* gain = slot < queries ? "attention.query_norm.gain" : "attention.key_norm.gain";
    const Numbers normed = plain_norm({head.begin(), head.end()}, in.at(gain), nullptr, 0.125);
    std::ranges::copy(normed, head.begin());
  }
  return turned(c, head, token % kLength);
}

// Of a query over those keys that `seen` says, by their values.
template <class Keys>
void attend(Numbers& out, const Channels& query, std::size_t num_keys, const Keys& keys,
            const auto& seen) {
  std::vector<double> scores;
  std::vector<Channels> values;
  for (std::size_t k = 0; k < num_keys; ++k) {
    if (seen(k)) {
      const auto [key, value] = keys(k);
      scores.push_back(std::inner_product(query.begin(), query.end(), key.begin(), 0.0) / 2);
      values.push_back(value);
    }
  }
  plain_softmax(scores);
  for (std::size_t i = 0; i < kHeadDim; ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < scores.size(); ++k) sum += scores[k] * values[k][i];
    out.push_back(sum);
  }
}

Numbers formula(const Case& c, const NamedNumbers& in) {
  const auto bias = [&](const char* name) { return c.bias ? &in.at(name) : nullptr; };
  const Numbers qkv =
      plain_linear(in.at("x"), in.at("attention.qkv.weight"), bias("attention.qkv.bias"), kHidden);
  const auto queries = as_size(c.heads / c.groups);
  Numbers heads;
  for (std::size_t token = 0; token < kTokens; ++token) {
    for (std::size_t head = 0; head < as_size(c.heads); ++head) {
      const std::size_t group = head / queries;
      const auto keys = [&](std::size_t key) {
        return std::pair{head_of(c, in, qkv, key, group, queries),
                         head_of(c, in, qkv, key, group, queries + 1)};
      };
      attend(heads, head_of(c, in, qkv, token, group, head % queries), kTokens, keys,
             [&](std::size_t key) { return sees(c, token, key); });
    }
  }
  return plain_linear(heads, in.at("attention.projection.weight"),
                      bias("attention.projection.bias"), as_size(c.heads) * kHeadDim);
}

void fill_batch(LayerCase& layer, bool documents) {
  std::vector<std::int32_t> positions, begin, end;
  for (std::size_t token = 0; token < kTokens; ++token) {
    positions.push_back(static_cast<std::int32_t>(token % kLength));
    begin.push_back(static_cast<std::int32_t>(begin_of(token)));
    end.push_back(static_cast<std::int32_t>(end_of(token)));
  }
  layer.batch.num_sequences = kSequences;
  layer.batch.length = kLength;
  layer.batch.positions = layer.int32(positions);
  layer.batch.places = layer.int32({0, 1, 2, 3, 4, 5});
  layer.batch.samples = layer.int64({3, 4});
  if (documents) {
    layer.batch.key_begin = layer.int32(begin);
    layer.batch.key_end = layer.int32(end);
  }
}

TEST(SelfAttention, IsTheSoftmaxOfScoresOverTheKeysThatAreSeen) {
  for (const Case& c :
       {Case{.name = "causal"}, Case{.name = "bidirectional", .causal = false},
        Case{.name = "groups", .heads = 6, .groups = 2}, Case{.name = "no bias", .bias = false},
        Case{.name = "documents", .documents = true},
        Case{.name = "padding", .causal = false, .documents = true},
        Case{.name = "window", .window = 3}, Case{.name = "rotary", .rotary = 1},
        Case{.name = "half rotary", .groups = 1, .rotary = 0.5},
        Case{.name = "interleaved", .rotary = 1, .interleaved = true},
        Case{.name = "norms of heads", .heads = 4, .groups = 2, .rotary = 1, .head_norm = true}}) {
    SCOPED_TRACE(c.name);
    LayerCase layer;
    fill_batch(layer, c.documents);
    const SelfAttention attention("attention", 0, options_of(c), layer.mesh);
    ParameterList parameters;
    attention.collect(parameters);
    layer.expect(
        {{"x", {kTokens, kHidden}}}, parameters,
        [&](Context& context, const std::map<std::string, Value>& in) {
          return std::vector{attention(context, in.at("x"))};
        },
        [&](const NamedNumbers& in) { return formula(c, in); });
  }
}

// Of an encoder's sequence with 5 tokens those from `first_key` to `last_key` of each query's.
std::size_t first_key(std::size_t token) { return token / kLength; }
std::size_t last_key(std::size_t token) { return 4 - token / kLength; }

Numbers cross_formula(const NamedNumbers& in, bool masked) {
  constexpr std::size_t kHeads = 3;
  const auto projected = [&](const char* x, const std::string& name) {
    return plain_linear(in.at(x), in.at("cross." + name + ".weight"),
                        &in.at("cross." + name + ".bias"), kHidden);
  };
  const Numbers q = projected("x", "query"), kv = projected("encoder", "key_value");
  const auto head_at = [](const Numbers& all, std::size_t first) {
    Channels head;
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(first), kHeadDim, head.begin());
    return head;
  };
  Numbers heads;
  for (std::size_t token = 0; token < kTokens; ++token) {
    for (std::size_t head = 0; head < kHeads; ++head) {
      const auto keys = [&](std::size_t key) {
        const std::size_t row = token / kLength * kSource + key;
        const std::size_t first = (row * kHeads + head) * 2 * kHeadDim;
        return std::pair{head_at(kv, first), head_at(kv, first + kHeadDim)};
      };
      attend(heads, head_at(q, (token * kHeads + head) * kHeadDim), kSource, keys,
             [&](std::size_t key) {
               return !masked || (key >= first_key(token) && key < last_key(token));
             });
    }
  }
  return plain_linear(heads, in.at("cross.projection.weight"), &in.at("cross.projection.bias"),
                      kHeads * kHeadDim);
}

TEST(CrossAttention, SeesWhatTheEncoderMade) {
  for (const bool masked : {false, true}) {
    LayerCase layer;
    fill_batch(layer, false);
    std::vector<std::int32_t> begin, end;
    for (std::size_t token = 0; token < kTokens; ++token) {
      begin.push_back(static_cast<std::int32_t>(first_key(token)));
      end.push_back(static_cast<std::int32_t>(last_key(token)));
    }
    layer.batch.encoder_key_begin = layer.int32(begin);
    layer.batch.encoder_key_end = layer.int32(end);
    const auto encoder = std::make_shared<Batch>();
    encoder->num_sequences = kSequences;
    encoder->length = kSource;
    layer.batch.encoder = encoder;
    const CrossAttention attention("cross", 0, options_of({}), layer.mesh, {.masked = masked});
    ParameterList parameters;
    attention.collect(parameters);
    layer.expect(
        {{"x", {kTokens, kHidden}}, {"encoder", {kSequences * kSource, kHidden}}}, parameters,
        [&](Context& context, const std::map<std::string, Value>& in) {
          return std::vector{attention(context, in.at("x"), in.at("encoder"))};
        },
        [&](const NamedNumbers& in) { return cross_formula(in, masked); });
  }
}

}  // namespace
}  // namespace bloomery::testing
