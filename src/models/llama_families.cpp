// The families that are Llama but for a row of this table.
#include <iterator>
#include <utility>

#include "models/decoder.h"
#include "models/llama_like.h"
#include "models/llama_tensors.h"
#include "models/megatron.h"

namespace bloomery {
namespace {

void mixtral_experts(HfConfig& c, ModelOptions& o) {
  c.fixed(o.moe.interval, 1, "not all of its layers have experts");
  c.fixed(o.moe.dense_layers, {}, "not all of its layers have experts");
  c.fixed(o.moe.ffn, o.mlp.ffn, "its experts have a width of their own");
  c.fixed(o.moe.shared_ffn, 0, "it has a shared expert");
  c.fixed(o.moe.renormalise, true, "the gates of a token do not sum to one");
}

constexpr LlamaExperts kMixtralExperts = {.key = "num_local_experts",
                                          .count = 8,
                                          .topk = 2,
                                          .config = mixtral_experts,
                                          .tensors = kMixtralTensors};

void qwen2_moe_experts(HfConfig& c, ModelOptions& o) {
  c.size({"decoder_sparse_step"}, o.moe.interval, 1);
  c.sizes("mlp_only_layers", o.moe.dense_layers);
  c.size({"moe_intermediate_size"}, o.moe.ffn, 1408);
  c.require(c.reading() || o.moe.shared_ffn > 0, "it has no shared expert");
  c.size({"shared_expert_intermediate_size"}, o.moe.shared_ffn, 5632);
  bool renormalise = o.moe.renormalise.value_or(false);
  c.flag("norm_topk_prob", renormalise, false);
  c.fixed(o.moe.renormalise, renormalise, "");
}

constexpr LlamaExperts kQwen2MoeExperts = {.key = "num_experts",
                                           .count = 60,
                                           .topk = 4,
                                           .ffn = 1408,
                                           .shared_ffn = 5632,
                                           .renormalise = false,
                                           .config = qwen2_moe_experts,
                                           .tensors = kQwen2MoeTensors};

// "gelu" stands for the tanh formula in Gemma's files.
void gemma_gates(HfConfig& c, ModelOptions& o) {
  c.require(c.reading() || o.mlp.kind != MlpKind::geglu_erf,
            "its gates are GELU by the error function");
  if (o.mlp.kind == MlpKind::geglu_erf) {
    o.mlp.kind = MlpKind::geglu_tanh;
  }
  c.only("use_bidirectional_attention", false, "attention to later keys is not supported");
}

// In the order of help.
constexpr LlamaLike kRows[] = {
    {.name = "llama",
     .summary = "Llama 1, 2 and 3",
     .model_type = "llama",
     .architecture = "LlamaForCausalLM",
     .biases = AttentionBiases::by_attention_bias,
     .mlp_bias_key = true,
     .megatron = kMegatronDecoder},
    {.name = "qwen2",
     .summary = "Qwen2 and Qwen2.5",
     .model_type = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .ffn = 22016,
     .groups = 32,
     .vocabulary = 151936,
     .max_length = 32768,
     .tokens = {},
     .biases = AttentionBiases::queries_keys_values,
     .windows = HfWindows::by_layer,
     .epsilon = 1e-6f,
     .rotary_base = 1e6,
     .megatron = kMegatronDecoder},
    {.name = "mistral",
     .summary = "Mistral, with a sliding window",
     .model_type = "mistral",
     .architecture = "MistralForCausalLM",
     .ffn = 14336,
     .groups = 8,
     .max_length = 131072,
     .windows = HfWindows::all_layers,
     .window = 4096},
    {.name = "qwen3",
     .summary = "Qwen3",
     .model_type = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .ffn = 22016,
     .groups = 32,
     .vocabulary = 151936,
     .max_length = 32768,
     .head_dim = 128,
     .tokens = {},
     .biases = AttentionBiases::by_attention_bias,
     .windows = HfWindows::by_layer,
     .head_norm = true,
     .epsilon = 1e-6f,
     .rotary_base = 1e6},
    {.name = "gemma",
     .summary = "Gemma 1",
     .model_type = "gemma",
     .architecture = "GemmaForCausalLM",
     .heads = 16,
     .layers = 28,
     .hidden = 3072,
     .ffn = 24576,
     .groups = 16,
     .vocabulary = 256000,
     .max_length = 8192,
     .head_dim = 256,
     .activation = "gelu_pytorch_tanh",
     .tokens = {.bos = 2, .eos = 1, .pad = 0},
     .biases = AttentionBiases::by_attention_bias,
     .one_plus_gain = true,
     .scaled_embeddings = true,
     .tied = true,
     .gates = MlpKind::geglu_tanh,
     .epsilon = 1e-6f,
     .further = gemma_gates},
    {.name = "mixtral",
     .summary = "Mixtral: Llama with experts",
     .model_type = "mixtral",
     .architecture = "MixtralForCausalLM",
     .ffn = 14336,
     .groups = 8,
     .max_length = 131072,
     .windows = HfWindows::refused,
     .rotary_base = 1e6,
     .experts = &kMixtralExperts},
    {.name = "qwen2-moe",
     .summary = "Qwen2-MoE, with a shared expert",
     .model_type = "qwen2_moe",
     .architecture = "Qwen2MoeForCausalLM",
     .heads = 16,
     .layers = 24,
     .hidden = 2048,
     .ffn = 5632,
     .groups = 16,
     .vocabulary = 151936,
     .max_length = 32768,
     .tokens = {},
     .biases = AttentionBiases::by_qkv_bias,
     .windows = HfWindows::by_layer,
     .epsilon = 1e-6f,
     .experts = &kQwen2MoeExperts},
};

constexpr std::string_view kIgnored[] = {".rotary_emb.inv_freq"};

template <std::size_t kRow>
constexpr HuggingFace kForm = {
    .model_type = kRows[kRow].model_type,
    .architecture = kRows[kRow].architecture,
    .prefix = "model.",
    .output = "lm_head.weight",
    .tensors = kRows[kRow].experts != nullptr ? kRows[kRow].experts->tensors
                                              : std::span<const TensorRule>(kLlamaTensors),
    .ignored = kIgnored,
    .has_experts = kRows[kRow].experts != nullptr,
    .config = [](HfConfig& c, ModelOptions& o) { llama_config(c, o, kRows[kRow]); }};

template <std::size_t kRow>
constexpr Family kFamily = {.name = kRows[kRow].name,
                            .summary = kRows[kRow].summary,
                            .defaults = [](ModelOptions& o) { llama_defaults(o, kRows[kRow]); },
                            .num_blocks = num_decoder_blocks,
                            .blocks = decoder_blocks,
                            .hugging_face = &kForm<kRow>,
                            .megatron = {.tensors = kRows[kRow].megatron}};

template <std::size_t... kRow>
std::vector<const Family*> all(std::index_sequence<kRow...>) {
  return {&kFamily<kRow>...};
}

}  // namespace

std::vector<const Family*> llama_families() {
  return all(std::make_index_sequence<std::size(kRows)>());
}

}  // namespace bloomery
