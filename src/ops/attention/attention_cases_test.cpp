#include <cmath>
#include <iomanip>

#include "harness/op_harness.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_settings.h"
#include "ops/matmul/amx.h"

namespace bloomery::testing {
namespace {

// attention: qkv [sequences * length, groups, heads/groups + 2, dim], in every group the query
// heads, then one key and one value head that they share. For sequence b, head h, query q
//   y[b, q, h] = sum_k F P V,  P = softmax over the visible k of scale * Q . K,
// where key k is visible iff key_begin[q] <= k < key_end[q] (inputs of those names, per token; all
// keys without them) and, when causal, k <= q + key_length - query_length. A query that sees no
// key gives zeros. F is 1 without dropout, else 0 or 65536 / (65536 - threshold) as counter.h
// says, with threshold = round(65536 dropout), key dropout_key, sample samples[b], place
// places[q], global head first_head + h. A window > 0 hides keys at k <= q + key_length -
// query_length - window too. With an input bias [buckets, heads], T5's bias of distance
// k - (q + key_length - query_length) is added to the scaled scores.
//
// cross_attention: q [sequences * length, heads, dim] and kv [sequences * key_length, groups, 2,
// dim], otherwise the same.
struct Problem {
  std::string name;
  std::int64_t sequences = 1, length = 1, heads = 1, groups = 1, dim = 1;
  bool causal = true;
  float dropout = 0;
  std::int64_t key_length = 0;           // of cross-attention; 0: self-attention
  std::vector<std::int64_t> begin, end;  // key ranges of one sequence, used for all
  std::int64_t first_head = 0;
  double deviation = 1;
  std::int64_t window = 0;
  std::int64_t buckets = 0, max_distance = 128;  // of a relative bias; 0: none
};

constexpr RandomKey kDropoutKey = 0x0123456789ABCDEFu;

AttentionOptions options_of(const Problem& p) {
  return {.num_heads = p.heads,
          .num_groups = p.groups,
          .head_dim = p.dim,
          .scale = 1.0f / std::sqrt(static_cast<float>(p.dim)),
          .causal = p.causal,
          .window = p.window,
          .dropout = {p.dropout, kDropoutKey},
          .first_head = p.first_head};
}

// All digits, as the PyTorch script needs the very number.
std::string exact(float value) { return concat(std::setprecision(9), value); }

std::vector<std::int64_t> repeated(const std::vector<std::int64_t>& values, std::int64_t times) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < times; ++i) {
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::vector<Input> inputs_of(const Problem& p) {
  const std::int64_t tokens = p.sequences * p.length;
  std::vector<Input> inputs;
  if (p.key_length == 0) {
    inputs.push_back({.name = "qkv",
                      .shape = {tokens, p.groups, p.heads / p.groups + 2, p.dim},
                      .deviation = p.deviation});
  } else {
    inputs.push_back({.name = "q", .shape = {tokens, p.heads, p.dim}, .deviation = p.deviation});
    inputs.push_back({.name = "kv",
                      .shape = {p.sequences * p.key_length, p.groups, 2, p.dim},
                      .deviation = p.deviation});
  }
  if (p.buckets > 0) {
    inputs.push_back(
        {.name = "bias", .role = Role::parameter, .shape = {p.buckets, p.heads}, .deviation = 2});
  }
  if (!p.begin.empty()) {
    inputs.push_back({.name = "key_begin",
                      .role = Role::int32,
                      .shape = {tokens},
                      .integers = repeated(p.begin, p.sequences)});
    inputs.push_back({.name = "key_end",
                      .role = Role::int32,
                      .shape = {tokens},
                      .integers = repeated(p.end, p.sequences)});
  }
  if (p.dropout > 0) {
    std::vector<std::int64_t> samples, places;
    for (std::int64_t b = 0; b < p.sequences; ++b) {
      samples.push_back((b + 1) * 4294967311);
    }
    for (std::int64_t q = 0; q < p.length; ++q) {
      places.push_back(100 + 3 * q);
    }
    inputs.push_back(
        {.name = "samples", .role = Role::int64, .shape = {p.sequences}, .integers = samples});
    inputs.push_back(
        {.name = "places", .role = Role::int32, .shape = {p.length}, .integers = places});
  }
  return inputs;
}

void fill_batch(const Problem& p, Batch& batch, const Inputs& in) {
  batch.num_sequences = p.sequences;
  batch.length = p.length;
  if (!p.begin.empty()) {
    batch.key_begin = in.tensor("key_begin");
    batch.key_end = in.tensor("key_end");
  }
  if (p.dropout > 0) {
    batch.samples = in.tensor("samples");
    batch.places = in.tensor("places");
  }
}

OpCase make_case(const Problem& p) {
  OpCase op_case;
  op_case.name = p.name;
  op_case.inputs = inputs_of(p);
  op_case.forward = [p](Context& context, Inputs& in) -> Outputs {
    AttentionOptions options = options_of(p);
    if (p.buckets > 0) {
      options.bias = {.table = &in.parameter("bias"), .max_distance = p.max_distance};
    }
    AttentionPlaces places = places_of(context.batch);
    if (p.key_length == 0) {
      return {{"y", attention(context, in.value("qkv"), places, options)}};
    }
    places.key_length = p.key_length;
    return {{"y", attention(context, in.value("q"), in.value("kv"), places, options)}};
  };
  op_case.attributes = {{"sequences", concat(p.sequences)},
                        {"heads", concat(p.heads)},
                        {"groups", concat(p.groups)},
                        {"scale", exact(options_of(p).scale)},
                        {"causal", p.causal ? "true" : "false"},
                        {"dropout", concat(p.dropout)},
                        {"dropout_key", concat(kDropoutKey)},
                        {"first_head", concat(p.first_head)},
                        {"window", concat(p.window)},
                        {"max_distance", concat(p.max_distance)},
                        {"key_length", concat(p.key_length == 0 ? p.length : p.key_length)}};
  op_case.batch = [p](Batch& batch, Inputs& in) { fill_batch(p, batch, in); };
  if (p.dropout > 0) {  // PyTorch takes no mask of ours: 1.5 times its error on the cases without
    op_case.tolerance = {{DType::fp32, 1.1e-6}, {DType::bf16, 5e-3}, {DType::fp16, 7e-4}};
  }
  if (p.buckets > 0) {  // PyTorch keeps the scores of these and rounds nothing but results
    op_case.tolerance = {{DType::fp32, 1.1e-6}, {DType::bf16, 6e-3}, {DType::fp16, 8e-4}};
  }
  return op_case;
}

// Ranges of documents that end at `borders`, the last of which is the length.
Problem with_documents(Problem p, const std::vector<std::int64_t>& borders) {
  std::int64_t begin = 0;
  for (const std::int64_t end : borders) {
    for (std::int64_t q = begin; q < end; ++q) {
      p.begin.push_back(begin);
      p.end.push_back(end);
    }
    begin = end;
  }
  return p;
}

// Every query sees the first `keys` keys; queries from `silent` on see none.
Problem with_padding(Problem p, std::int64_t keys, std::int64_t silent) {
  for (std::int64_t q = 0; q < p.length; ++q) {
    p.begin.push_back(q < silent ? 0 : keys);
    p.end.push_back(keys);
  }
  return p;
}

Problem bidirectional(Problem p) {
  p.causal = false;
  return p;
}
Problem dropping(Problem p, float probability) {
  p.dropout = probability;
  p.first_head = 5;
  return p;
}
Problem across(Problem p, std::int64_t key_length) {
  p.key_length = key_length;
  return p;
}
Problem sharpened(Problem p, double deviation) {
  p.deviation = deviation;
  return p;
}

Problem sliding(Problem p, std::int64_t window) {
  p.window = window;
  return p;
}
Problem biased(Problem p, std::int64_t buckets, std::int64_t max_distance) {
  p.buckets = buckets;
  p.max_distance = max_distance;
  return p;
}

std::vector<OpCase> make_cases(const std::vector<Problem>& problems) {
  std::vector<OpCase> cases;
  for (const Problem& p : problems) {
    cases.push_back(make_case(p));
  }
  return cases;
}

// bf16 cases with a forced way to multiply.
std::vector<OpCase> with_tiles(std::vector<OpCase> cases, AttentionTiles tiles,
                               const std::string& name) {
  for (OpCase& op_case : cases) {
    op_case.cpu_variant = name;
    op_case.dtypes = {DType::bf16};
    op_case.forward = [tiles, forward = op_case.forward](Context& context, Inputs& in) {
      context.stream.device().service<AttentionSettings>().tiles = tiles;
      return forward(context, in);
    };
  }
  return cases;
}

// Name, sequences, length, heads, groups, head dimension; causal unless it says otherwise.
std::vector<OpCase> self_cases() {
  return make_cases(
      {{"one_token", 1, 1, 1, 1, 8},
       {"one_channel", 2, 5, 2, 2, 1},
       {"causal_short", 3, 5, 4, 4, 16},
       {"causal_block", 2, 64, 2, 2, 64},
       {"causal_odd", 2, 65, 3, 3, 33},
       {"causal_long", 1, 130, 2, 2, 80},
       {"wide_head", 1, 70, 2, 1, 128},
       {"grouped", 2, 65, 8, 2, 16},
       {"one_group", 1, 130, 6, 1, 8},
       bidirectional({"bidirectional", 2, 130, 2, 2, 64}),
       sharpened({"sharp_scores", 1, 65, 2, 2, 16}, 8),
       dropping({"dropout", 2, 70, 4, 2, 16}, 0.3f),
       dropping(bidirectional({"dropout_bidirectional", 1, 37, 2, 2, 33}), 0.1f),
       with_documents({"documents", 2, 130, 2, 2, 16}, {3, 4, 70, 71, 130}),
       with_documents(dropping({"documents_dropout", 1, 130, 2, 1, 64}, 0.2f), {69, 101, 130}),
       with_padding(bidirectional({"padding", 2, 65, 2, 2, 16}), 50, 65),
       with_padding(bidirectional({"queries_without_keys", 2, 9, 2, 1, 8}), 6, 7),
       sliding({"window_of_one", 1, 9, 2, 2, 8}, 1),
       sliding({"window", 2, 150, 4, 2, 16}, 30),
       sliding({"window_wider_than_a_tile", 1, 300, 2, 1, 32}, 130),
       sliding({"window_of_all", 1, 65, 2, 2, 16}, 65),
       sliding(with_documents({"window_documents", 2, 130, 2, 2, 16}, {3, 4, 70, 71, 130}), 20),
       sliding(dropping({"window_dropout", 1, 130, 2, 1, 64}, 0.2f), 33),
       biased({"bias", 2, 70, 4, 2, 16}, 32, 128),
       biased({"bias_long", 1, 200, 2, 2, 40}, 8, 20),
       biased(bidirectional({"bias_bidirectional", 1, 190, 2, 2, 64}), 32, 128),
       biased(dropping(bidirectional({"bias_dropout", 2, 37, 2, 2, 33}), 0.1f), 16, 24),
       biased(with_padding(bidirectional({"bias_padding", 2, 65, 2, 2, 16}), 50, 60), 32, 40),
       sliding(biased({"bias_window", 1, 130, 2, 1, 16}, 32, 50), 40)});
}

std::vector<OpCase> cross_cases() {
  return make_cases({across(bidirectional({"short", 2, 5, 2, 2, 8}), 7),
                     across(bidirectional({"grouped", 2, 70, 4, 2, 16}), 130),
                     across(bidirectional({"one_query", 3, 1, 4, 1, 64}), 65),
                     across({"causal_at_the_end", 2, 5, 2, 2, 16}, 70),
                     across({"causal_fewer_keys", 1, 9, 2, 2, 16}, 5),
                     across(sliding({"window_at_the_end", 2, 5, 2, 2, 16}, 9), 70),
                     across(biased({"bias_at_the_end", 2, 5, 2, 2, 16}, 32, 128), 70),
                     across(dropping(bidirectional({"dropout", 2, 5, 2, 2, 16}), 0.25f), 70),
                     across(with_padding(bidirectional({"padding", 2, 6, 2, 2, 33}), 40, 6), 65)});
}

// Extents around multiples of the tiles' 32, of blocks of 64 queries and of tiles of 64 keys.
std::vector<OpCase> shapes_for_tiles() {
  std::vector<Problem> problems;
  for (const std::int64_t dim : {1, 32, 40, 64, 80, 128}) {
    for (const std::int64_t length : {31, 97, 211}) {
      problems.push_back({concat("dim_", dim, "_length_", length), 1, length, 4, 2, dim});
    }
  }
  const Problem base{"", 1, 193, 2, 1, 40};
  const auto add = [&](const std::string& name, Problem p) {
    p.name = name;
    problems.push_back(p);
  };
  add("thirty_two", {"", 1, 32, 1, 1, 32});
  add("thirty_three", {"", 1, 33, 1, 1, 33});
  add("odd_bidirectional", bidirectional(base));
  add("odd_dropout", dropping(base, 0.15f));
  add("odd_documents", with_documents(base, {1, 32, 97, 98, 193}));
  add("odd_documents_dropout", dropping(with_documents(base, {63, 65, 131, 193}), 0.3f));
  add("odd_padding", with_padding(bidirectional(base), 101, 150));
  add("odd_window", sliding(base, 50));
  add("odd_bias", biased(base, 32, 70));
  add("odd_bias_padding", biased(with_padding(bidirectional(base), 101, 150), 32, 128));
  add("no_keys_at_all", with_padding(bidirectional(base), 0, 0));
  std::vector<OpCase> cases = make_cases(problems);
  for (OpCase& op_case : cases) {
    op_case.tolerance[DType::bf16] = 5e-3;  // 1.5 times PyTorch's on the cases above
  }
  return cases;
}

// Where the processor has tiles, the cases without a variant run on them.
bool register_tiles() {
  const auto add = [](AttentionTiles tiles, const std::string& name) {
    register_op_tests("attention", with_tiles(self_cases(), tiles, name));
    register_op_tests("attention", with_tiles(shapes_for_tiles(), tiles, name));
    register_op_tests("cross_attention", with_tiles(cross_cases(), tiles, name));
  };
  add(AttentionTiles::emulated, "emulated");
  if (amx_usable()) {
    add(AttentionTiles::hardware, "tiles");
    add(AttentionTiles::vectors, "vectors");
  }
  return true;
}

const bool kRegistered = register_op_tests("attention", self_cases()) &&
                         register_op_tests("cross_attention", cross_cases()) && register_tiles();

}  // namespace
}  // namespace bloomery::testing
