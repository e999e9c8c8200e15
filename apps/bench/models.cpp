#include "apps/bench/models.h"

#include <algorithm>

#include "models/family.h"

namespace bloomery {
namespace {

struct Sizes {
  std::int64_t layers, hidden, heads, vocabulary;
};

ModelOptions gpt(const Sizes& sizes) {
  ModelOptions o;
  o.num_layers = sizes.layers;
  o.hidden_size = sizes.hidden;
  o.attention.num_heads = sizes.heads;
  o.vocabulary.size = sizes.vocabulary;
  return o;
}

ModelOptions llama_like(const std::string& family, const Sizes& sizes, std::int64_t groups,
                        std::int64_t ffn, bool tied) {
  ModelOptions o = gpt(sizes);
  o.family = family;
  find_family(family).defaults(o);
  o.attention.num_groups = groups;
  o.mlp.ffn = ffn;
  o.vocabulary.untied = !tied;
  return o;
}

}  // namespace

// Sizes above 345M are Megatron's. Where 16 bytes a parameter leave little room, steps have several
// micro-batches.
const std::vector<BenchModel>& bench_models() {
  static const std::vector<BenchModel> models = {
      {"10M", gpt({6, 384, 6, 512}), {64, 1024}, {16, 256}},
      {"124M", gpt({12, 768, 12, 50304}), {64, 1024}, {4, 256}},
      {"345M", gpt({24, 1024, 16, 50304}), {32, 1024}, {2, 256}},
      {"qwen2.5-1.5B",
       llama_like("qwen2", {28, 1536, 12, 151936}, 2, 8960, true),
       {16, 1024},
       {1, 256}},
      {"llama-1.6B",
       llama_like("llama", {24, 2048, 16, 32000}, 8, 8192, false),
       {8, 2048},
       {1, 256}},
      {"1.7B", gpt({24, 2304, 24, 51200}), {8, 2048}, {1, 256}},
      {"3.6B", gpt({30, 3072, 32, 51200}), {4, 2048}, {1, 256}},
      {"llama-7B",
       llama_like("llama", {32, 4096, 32, 32000}, 32, 11008, false),
       {2, 1024, 8},
       {1, 256}},
      {"7.5B", gpt({36, 4096, 32, 51200}), {1, 2048, 16}, {1, 256}},
      {"qwen2.5-7B",
       llama_like("qwen2", {28, 3584, 28, 152064}, 4, 18944, false),
       {1, 1024, 16},
       {1, 256}},
  };
  return models;
}

const BenchModel& bench_model(const std::string& name) {
  return *std::ranges::find(bench_models(), name, &BenchModel::name);
}

std::vector<std::string> bench_model_names() {
  std::vector<std::string> names;
  for (const BenchModel& model : bench_models()) {
    names.push_back(model.name);
  }
  return names;
}

}  // namespace bloomery
