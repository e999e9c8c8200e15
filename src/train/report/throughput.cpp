#include "train/report/throughput.h"

#include "base/error.h"

namespace bloomery {
namespace {

double real(std::int64_t value) { return static_cast<double>(value); }

void check_shape(const ModelShape& shape) {
  check(shape.heads > 0 && shape.kv_heads > 0 && shape.layers > 0 && shape.width > 0,
        "operations are counted for a model with layers, width and heads; here are ", shape.layers,
        ", ", shape.width, " and ", shape.heads, " (", shape.kv_heads, " of keys)");
}

}  // namespace

ModelShape model_shape(const ModelOptions& m, std::int64_t padded_vocabulary) {
  ModelShape shape{.layers = m.num_layers,
                   .width = m.hidden_size,
                   .heads = m.attention.num_heads,
                   .kv_heads = m.attention.num_groups,
                   .ffn_width = m.mlp.ffn,
                   .padded_vocabulary = padded_vocabulary,
                   .gated = m.mlp.gated(),
                   .active_experts = m.moe.any() ? m.moe.topk : 1,
                   .head_dim = m.attention.head_dim,
                   .causal = m.attention.causal};
  const std::int64_t expert = m.moe.ffn != 0 ? m.moe.ffn : m.mlp.ffn;
  const std::int64_t beside = m.moe.kind == MoeKind::residual ? m.mlp.ffn : 0;
  for (std::int64_t layer = 0; layer < m.num_layers; ++layer) {
    shape.all_ffn_widths +=
        m.moe.experts_of(layer) > 1 ? m.moe.topk * expert + m.moe.shared_ffn + beside : m.mlp.ffn;
  }
  return shape;
}

std::optional<double> peak_flops(const std::string& device, DType dtype) {
  if (dtype != DType::bf16 && dtype != DType::fp16) {
    return std::nullopt;
  }
  constexpr std::pair<const char*, double> kPeaks[] = {
      {"H200", 989e12}, {"H100", 989e12}, {"B200", 2250e12}, {"A100", 312e12}, {"L40S", 362e12}};
  for (const auto& [name, peak] : kPeaks) {
    if (device.find(name) != std::string::npos) {
      return peak;
    }
  }
  return std::nullopt;
}

double deepspeed_flops(const ModelShape& shape, std::int64_t batch, std::int64_t length,
                       Recomputation recomputation) {
  check_shape(shape);
  const double width = real(shape.width);
  const std::int64_t group = shape.heads / shape.kv_heads;
  const double projections = (2 + (group > 0 ? real(2 / group) : 2)) * width * width;
  const double ffn =
      (shape.gated ? 3 : 2) * real(shape.ffn_width) * width * real(shape.active_experts);
  // Scores and sums of values, per token and key.
  const double per_key = 2 * real(shape.width / shape.heads) * real(shape.heads);
  const double tokens = real(batch) * real(length);
  const double decoded = real(batch) * real(shape.decoder_length);
  const double decoder = real(shape.decoder_layers);

  const double attention =
      real(shape.layers) * per_key * real(length) * tokens +
      decoder * per_key * decoded * (real(shape.decoder_length) + real(length));
  const double products = (projections + ffn) * (real(shape.layers) * tokens + decoder * decoded);
  // Queries and outputs are of the decoder's tokens, keys and values of the encoder's.
  const double cross = decoder * 2 * width * width * (decoded + tokens);
  const double logits =
      real(shape.padded_vocabulary) * width * (shape.decoder_layers > 0 ? decoded : tokens);
  const double forward = products + cross + attention + logits;

  double all = 3 * forward;
  if (recomputation == Recomputation::full) all += forward;
  if (recomputation == Recomputation::selective) all += attention;
  return 2 * all;
}

double model_flops(const ModelShape& shape, std::int64_t batch, std::int64_t length) {
  check_shape(shape);
  const double width = real(shape.width), layers = real(shape.layers);
  const double inner = shape.head_dim > 0 ? real(shape.heads * shape.head_dim) : width;
  const double projections =
      4 * width * inner * (1 + real(shape.kv_heads) / real(shape.heads));  // of a token
  const double all_ffn =
      (shape.gated ? 6 : 4) * width *
      (shape.all_ffn_widths > 0 ? real(shape.all_ffn_widths)
                                : layers * real(shape.ffn_width) * real(shape.active_experts));
  const double tokens = real(batch) * real(length);
  const double decoded = real(batch) * real(shape.decoder_length);
  const double decoder = real(shape.decoder_layers);

  const double attention =
      layers * (shape.causal ? 2 : 4) * inner * real(length) * tokens +
      decoder * inner * decoded * (2 * real(shape.decoder_length) + 4 * real(length));
  const double products =
      projections * (layers * tokens + decoder * decoded) +
      all_ffn * (tokens + decoder / layers * decoded) +
      decoder * 4 * width * inner * (decoded + real(shape.kv_heads) / real(shape.heads) * tokens);
  const double logits =
      2 * width * real(shape.padded_vocabulary) * (shape.decoder_layers > 0 ? decoded : tokens);
  return 3 * (products + attention + logits);
}

Throughput throughput(const ModelShape& shape, std::int64_t batch, std::int64_t length,
                      Recomputation recomputation, double seconds, std::int64_t num_devices) {
  check(seconds > 0 && num_devices > 0, "throughput of ", seconds, " seconds on ", num_devices,
        " devices");
  Throughput result;
  result.samples_per_second = real(batch) / seconds;
  result.tokens_per_second = result.samples_per_second * real(length);
  result.tokens_per_gpu_per_second = result.tokens_per_second / real(num_devices);
  const double per_device = seconds * real(num_devices) * 1e12;
  result.tflops = deepspeed_flops(shape, batch, length, recomputation) / per_device;
  result.model_tflops = model_flops(shape, batch, length) / per_device;
  return result;
}

}  // namespace bloomery
