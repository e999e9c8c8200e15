#include "ops/norm/norm.h"

#include "harness/op_harness.h"
#include "ops/arithmetic/arithmetic.h"

namespace bloomery::testing {
namespace {

struct Variant {
  std::int64_t rows = 7, columns = 64;
  NormOptions options;
  bool pending = true, bias = true;
  float dropout = 0;
  bool wide_stream = false;  // the stream is cast to fp32 first
  bool only_y = false;       // nobody uses the new stream
  double mean = 0, deviation = 1;
  float epsilon() const { return options.epsilon; }
};

constexpr RandomKey kKey = 0x0123456789ABCDEFu;

std::string name_of(const Variant& v) {
  return concat(v.options.kind == NormKind::layer ? "layer" : "rms", ",rows=", v.rows,
                ",columns=", v.columns, v.options.one_plus_gain ? ",one_plus" : "",
                v.pending ? "" : ",no_pending", v.bias ? "" : ",no_bias",
                v.dropout > 0 ? concat(",dropout=", v.dropout) : "",
                v.wide_stream ? ",fp32_stream" : "", v.only_y ? ",only_y" : "",
                v.mean != 0 ? concat(",mean=", v.mean) : "", v.deviation == 0 ? ",constant" : "");
}

Outputs forward(Context& context, Inputs& in, const Variant& v) {
  Value stream = in.value("stream");
  if (v.wide_stream && in.dtype != DType::fp64) {
    stream = cast(context, stream, DType::fp32);
  }
  const NormResult result = add_norm(context, stream, v.pending ? in.value("pending") : Value{},
                                     in.parameter("gain"), v.bias ? &in.parameter("bias") : nullptr,
                                     v.options, {.probability = v.dropout, .key = kKey});
  if (v.only_y || !v.pending) {
    return {{"y", result.y}};
  }
  return {{"stream", result.stream}, {"y", result.y}};
}

// Sequences of 16 tokens where the rows allow it, else one sequence.
std::int64_t length_of(const Variant& v) { return v.rows % 16 == 0 && v.rows > 0 ? 16 : v.rows; }

OpCase make_case(const Variant& v) {
  OpCase op_case{.name = name_of(v),
                 .inputs = {{.name = "stream",
                             .shape = {v.rows, v.columns},
                             .mean = v.mean,
                             .deviation = v.deviation},
                            {.name = "gain",
                             .role = Role::parameter,
                             .shape = {v.columns},
                             .mean = 1,
                             .deviation = 0.3}},
                 .forward = [v](Context& context, Inputs& in) { return forward(context, in, v); },
                 .attributes = {{"kind", v.options.kind == NormKind::layer ? "layer" : "rms"},
                                {"epsilon", concat(v.epsilon())},
                                {"one_plus_gain", v.options.one_plus_gain ? "1" : "0"},
                                {"dropout", concat(v.dropout)},
                                {"dropout_key", concat(kKey)},
                                {"length", concat(length_of(v))},
                                {"fp32_stream", v.wide_stream ? "1" : "0"}},
                 .finite_differences = v.rows * v.columns <= 7 * 129 && v.deviation > 0};
  if (v.pending) {
    op_case.inputs.push_back(
        {.name = "pending", .shape = {v.rows, v.columns}, .deviation = v.deviation});
  }
  if (v.bias) {
    op_case.inputs.push_back({.name = "bias", .role = Role::parameter, .shape = {v.columns}});
  }
  if (v.dropout > 0) {
    const std::int64_t length = length_of(v);
    op_case.inputs.push_back(
        {.name = "samples", .role = Role::int64, .shape = {v.rows / length}, .limit = 1 << 30});
    op_case.inputs.push_back(
        {.name = "places", .role = Role::int32, .shape = {length}, .limit = 4096});
    op_case.batch = [v, length](Batch& batch, Inputs& in) {
      batch.num_sequences = v.rows / length;
      batch.length = length;
      batch.samples = in.tensor("samples");
      batch.places = in.tensor("places");
    };
  }
  if (v.mean == 1000) {
    // Half a unit in the last place of the stored mean is 3e-5 deviations. A sum rounded to two
    // bytes at this offset keeps nothing of the row, so that only fp32 adds.
    op_case.tolerance = {{DType::fp32, 1e-4}};
    if (v.pending) {
      op_case.dtypes = {DType::fp32};
    }
  }
  return op_case;
}

// x = stream + pending * mask / (1 - dropout), in fp32 if fp32_stream; then
//   layer: h = (x - mean(x)) / sqrt(var(x) + epsilon), with the biased variance
//   rms:   h = x / sqrt(mean(x^2) + epsilon)
//   y = h * (gain + (one_plus_gain ? 1 : 0)) + bias
// Outputs: stream = x (absent without pending and in cases named only_y) and y. The mask and the
// exact scale of dropout are those of ops/dropout/counter.h for token t at
// (samples[t / length], places[t % length]).
std::vector<OpCase> norm_cases() {
  const NormOptions layer{}, rms{.kind = NormKind::rms};
  const NormOptions layer_1p{.one_plus_gain = true};
  const NormOptions rms_1p{.kind = NormKind::rms, .epsilon = 1e-6f, .one_plus_gain = true};
  std::vector<OpCase> cases;
  const auto add = [&](const Variant& v) { cases.push_back(make_case(v)); };
  for (const auto& [rows, columns] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{7, 1},
                                                          {7, 3},
                                                          {1, 31},
                                                          {7, 64},
                                                          {64, 129},
                                                          {64, 768},
                                                          {7, 1000},
                                                          {7, 1024},
                                                          {3, 1600},
                                                          {2, 4099},
                                                          {2, 8192},
                                                          {2, 16400}}) {
    add({.rows = rows, .columns = columns, .options = layer});
    add({.rows = rows, .columns = columns, .options = rms, .bias = false});
  }
  add({.rows = 7, .columns = 129, .options = layer_1p});
  add({.rows = 7, .columns = 129, .options = rms_1p, .bias = false});
  add({.rows = 64, .columns = 256, .options = layer_1p, .pending = false});
  for (const std::int64_t columns : {31, 512, 2048}) {
    add({.columns = columns, .options = layer, .pending = false});
    add({.columns = columns, .options = rms, .pending = false});
    add({.columns = columns, .options = layer, .bias = false, .only_y = true});
    add({.rows = 64, .columns = columns, .options = layer, .dropout = 0.25f});
    add({.columns = columns, .options = rms, .bias = false, .dropout = 0.1f, .only_y = true});
    add({.columns = columns, .options = layer, .wide_stream = true});
    add({.columns = columns, .options = layer, .dropout = 0.5f, .wide_stream = true});
    add({.columns = columns, .options = layer, .mean = 1000});
    add({.columns = columns, .options = layer, .pending = false, .mean = 1000});
    add({.columns = columns, .options = layer, .mean = 3, .deviation = 0});
    add({.rows = 0, .columns = columns, .options = layer});
    add({.rows = 0, .columns = columns, .options = rms, .pending = false, .bias = false});
  }
  // More rows than blocks of partial sums.
  add({.rows = 4400, .columns = 24, .options = layer, .dropout = 0.1f});
  return cases;
}

const bool kRegistered = register_op_tests("norm", norm_cases());

}  // namespace
}  // namespace bloomery::testing
