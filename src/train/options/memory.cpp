#include "train/options/memory.h"

#include <algorithm>

namespace bloomery {
namespace {

struct Widths {
  std::int64_t hidden, queries, keys, ffn, up;  // keys: keys and values together
};

Widths widths(const GptOptions& o) {
  const std::int64_t heads = o.num_heads;
  const std::int64_t groups = o.num_key_value_heads > 0 ? o.num_key_value_heads : heads;
  const std::int64_t head_dim = o.head_dim > 0 ? o.head_dim : o.hidden_size / heads;
  const std::int64_t ffn = o.ffn_hidden_size > 0 ? o.ffn_hidden_size : 4 * o.hidden_size;
  return {o.hidden_size, heads * head_dim, 2 * groups * head_dim, ffn, o.gated ? 2 * ffn : ffn};
}

// Bytes a token keeps between blocks: the residual stream.
std::int64_t boundary_bytes(const GptOptions& o, std::int64_t element) {
  return o.hidden_size * (o.fp32_residual ? 4 : element);
}

// Bytes a token keeps inside a block: the streams its norms read, what they hand to the products,
// queries, keys, values and the output of attention, and the MLP before and after its activation.
std::int64_t block_bytes(const GptOptions& o, std::int64_t element) {
  const Widths w = widths(o);
  const std::int64_t statistics = 2 * 2 * 4 + o.num_heads * 4;
  return 2 * boundary_bytes(o, element) + statistics +
         element * (2 * w.hidden + w.queries + w.keys + w.queries + w.up + w.ffn);
}

}  // namespace

ParameterCount count_parameters(const GptOptions& o) {
  const Widths w = widths(o);
  const std::int64_t norm = o.norm.kind == NormKind::rms ? w.hidden : 2 * w.hidden;
  const std::int64_t biases = o.bias ? w.queries + w.keys + w.hidden + w.up + w.hidden : 0;
  ParameterCount count;
  count.embedding = o.vocabulary * w.hidden;
  count.positions = o.positions == PositionKind::learned ? o.max_positions * w.hidden : 0;
  count.per_layer = 2 * norm + w.hidden * (w.queries + w.keys) + w.queries * w.hidden +
                    w.hidden * w.up + w.ffn * w.hidden + biases;
  count.final_norm = norm;
  count.head = o.tied ? 0 : count.embedding;
  count.total =
      count.embedding + count.positions + o.num_layers * count.per_layer + norm + count.head;
  return count;
}

std::int64_t padded_vocabulary(std::int64_t vocabulary, std::int64_t divisible_by,
                               std::int64_t tensor_ranks) {
  const std::int64_t multiple = divisible_by * tensor_ranks;
  return (vocabulary + multiple - 1) / multiple * multiple;
}

MemoryEstimate estimate_memory(const GptOptions& o, DType dtype, int num_moments,
                               std::int64_t micro_batch, std::int64_t length) {
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t count = count_parameters(o).total, tokens = micro_batch * length;
  const std::int64_t layers = o.num_layers;
  const std::int64_t boundary = boundary_bytes(o, element), block = block_bytes(o, element);
  MemoryEstimate memory;
  memory.parameters = count * element;
  memory.gradients = count * 4;
  memory.optimizer = count * 4 * (num_moments + (element < 4 ? 1 : 0));
  std::int64_t per_token = 0;
  switch (o.recompute.method) {
    case RecomputeOptions::Method::none:
      per_token = layers * block;
      break;
    case RecomputeOptions::Method::uniform: {
      const std::int64_t group = std::min<std::int64_t>(o.recompute.num_layers, layers);
      per_token = (layers + group - 1) / group * boundary + group * block;
      break;
    }
    case RecomputeOptions::Method::block: {
      const std::int64_t again = std::min<std::int64_t>(o.recompute.num_layers, layers);
      per_token = again * boundary + std::max<std::int64_t>(layers - again, 1) * block;
      break;
    }
  }
  // The head keeps its input, the gradient of it and the stream below the last norm.
  memory.activations = tokens * (per_token + 2 * boundary + 2 * o.hidden_size * element);
  return memory;
}

}  // namespace bloomery
