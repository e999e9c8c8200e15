#include "train/options/memory.h"

#include <algorithm>

namespace bloomery {
namespace {

struct Widths {
  std::int64_t hidden, queries, keys, ffn, up;  // keys: keys and values together
};

Widths widths(const ModelOptions& o) {
  const SelfAttentionOptions& a = o.attention;
  return {o.hidden_size, a.num_heads * a.head_dim, 2 * a.num_groups * a.head_dim, o.mlp.ffn,
          o.mlp.gated() ? 2 * o.mlp.ffn : o.mlp.ffn};
}

// Bytes a token keeps between blocks: the residual stream.
std::int64_t boundary_bytes(const ModelOptions& o, std::int64_t element) {
  return o.hidden_size * (o.residual.fp32 ? 4 : element);
}

// Bytes a token keeps inside a block: the streams its norms read, what they hand to the products,
// queries, keys, values and the output of attention, and the MLP before and after its activation.
std::int64_t block_bytes(const ModelOptions& o, const RecomputeOptions& recompute,
                         std::int64_t element) {
  const Widths w = widths(o);
  const std::int64_t statistics = 2 * 2 * 4 + o.attention.num_heads * 4;
  const std::int64_t cheap = recompute.cheap_values ? 0 : 2 * w.hidden + w.ffn;
  return 2 * boundary_bytes(o, element) + statistics +
         element * (w.queries + w.keys + w.queries + w.up + cheap);
}

}  // namespace

ParameterCount count_parameters(const ModelOptions& options) {
  const Model model(options, Mesh::single(), DType::fp32);
  ParameterCount count;
  for (const Parameter* parameter : model.parameters()) {
    const std::int64_t elements = parameter->box.global.numel();
    count.total += elements;
    count.per_layer += parameter->name.starts_with("blocks.0.") ? elements : 0;
  }
  return count;
}

MemoryEstimate estimate_memory(const ModelOptions& o, const RecomputeOptions& recompute,
                               DType dtype, int num_moments, std::int64_t tokens) {
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t count = count_parameters(o).total;
  const std::int64_t layers = o.num_layers;
  const std::int64_t boundary = boundary_bytes(o, element);
  const std::int64_t block = block_bytes(o, recompute, element);
  MemoryEstimate memory;
  memory.parameters = count * element;
  memory.gradients = count * 4;
  memory.optimizer = count * 4 * (num_moments + (element < 4 ? 1 : 0));
  std::int64_t per_token = 0;
  switch (recompute.method) {
    case RecomputeOptions::Method::none:
      per_token = layers * block;
      break;
    case RecomputeOptions::Method::uniform: {
      const std::int64_t group = std::min<std::int64_t>(recompute.num_layers, layers);
      per_token = (layers + group - 1) / group * boundary + group * block;
      break;
    }
    case RecomputeOptions::Method::block: {
      const std::int64_t again = std::min<std::int64_t>(recompute.num_layers, layers);
      per_token = again * boundary + std::max<std::int64_t>(layers - again, 1) * block;
      break;
    }
  }
  // The head keeps its input, the gradient of it and the stream below the last norm.
  memory.activations = tokens * (per_token + 2 * boundary + 2 * o.hidden_size * element);
  return memory;
}

}  // namespace bloomery
