#include "train/log/throughput.h"

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

double deepspeed_flops(const ModelShape& shape, std::int64_t batch, std::int64_t length,
                       Recomputation recomputation) {
  check_shape(shape);
  const double tokens = real(batch) * real(length);
  const double width = real(shape.width), layers = real(shape.layers);
  const std::int64_t group = shape.heads / shape.kv_heads;
  const double keys_and_values = group > 0 ? real(2 / group) : 2;
  const double head_dim = real(shape.width / shape.heads);

  const double projections = layers * (2 + keys_and_values) * width * width * tokens;
  const double attention = layers * 2 * head_dim * real(shape.heads) * real(length) * tokens;
  const double ffn = layers * (shape.gated ? 3 : 2) * real(shape.ffn_width) * width * tokens *
                     real(shape.active_experts);
  const double logits = real(shape.padded_vocabulary) * width * tokens;
  const double forward = projections + attention + ffn + logits;

  double products = 3 * forward;
  if (recomputation == Recomputation::full) products += forward;
  if (recomputation == Recomputation::selective) products += attention;
  return 2 * products;
}

double model_flops(const ModelShape& shape, std::int64_t batch, std::int64_t length) {
  check_shape(shape);
  const double tokens = real(batch) * real(length);
  const double width = real(shape.width);
  const double projections =
      4 * tokens * width * width * (1 + real(shape.kv_heads) / real(shape.heads));
  const double attention = 2 * tokens * real(length) * width;
  const double ffn =
      (shape.gated ? 6 : 4) * tokens * width * real(shape.ffn_width) * real(shape.active_experts);
  const double logits = 2 * tokens * width * real(shape.padded_vocabulary);
  return 3 * (real(shape.layers) * (projections + attention + ffn) + logits);
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
