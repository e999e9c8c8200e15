// T5: as Megatron trains it (learned positions, layer norms, biases), and as Hugging Face has it
// (v1.0 and v1.1: a bias by distance, RMS norms, no biases), by switches.
#include "models/t5.h"

#include "base/findings.h"
#include "config/option_table.h"
#include "models/family.h"
#include "models/megatron.h"

namespace bloomery {
namespace {

constexpr std::string_view kBothGates = "(x f) e -> x f e";

// An MLP has one of two forms, of which the rule fits whose shape does.
constexpr TensorRule kTensors[] = {
    {"embedding.tokens.weight", "shared.weight", "v e -> v e"},
    {"encoder.#.norm_1.gain", "encoder.block.#.layer.0.layer_norm.weight", "e -> e"},
    {"encoder.#.attention.qkv.weight",
     "encoder.block.#.layer.0.SelfAttention.q.weight|encoder.block.#.layer.0.SelfAttention.k.weight"
     "|encoder.block.#.layer.0.SelfAttention.v.weight",
     "(m x d) e -> m x d e", "g11"},
    {"encoder.#.attention.projection.weight", "encoder.block.#.layer.0.SelfAttention.o.weight",
     "e q -> e q"},
    {"encoder.relative_bias.weight",
     "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", "r h -> r h"},
    {"encoder.#.norm_2.gain", "encoder.block.#.layer.1.layer_norm.weight", "e -> e"},
    {"encoder.#.mlp.up.weight", "encoder.block.#.layer.1.DenseReluDense.wi.weight", "f e -> f e"},
    {"encoder.#.mlp.up.weight",
     "encoder.block.#.layer.1.DenseReluDense.wi_0.weight"
     "|encoder.block.#.layer.1.DenseReluDense.wi_1.weight",
     kBothGates, "11"},
    {"encoder.#.mlp.down.weight", "encoder.block.#.layer.1.DenseReluDense.wo.weight", "e f -> e f"},
    {"encoder.final_norm.gain", "encoder.final_layer_norm.weight", "e -> e"},
    {"decoder.#.norm_1.gain", "decoder.block.#.layer.0.layer_norm.weight", "e -> e"},
    {"decoder.#.attention.qkv.weight",
     "decoder.block.#.layer.0.SelfAttention.q.weight|decoder.block.#.layer.0.SelfAttention.k.weight"
     "|decoder.block.#.layer.0.SelfAttention.v.weight",
     "(m x d) e -> m x d e", "g11"},
    {"decoder.#.attention.projection.weight", "decoder.block.#.layer.0.SelfAttention.o.weight",
     "e q -> e q"},
    {"decoder.relative_bias.weight",
     "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", "r h -> r h"},
    {"decoder.#.cross_norm.gain", "decoder.block.#.layer.1.layer_norm.weight", "e -> e"},
    {"decoder.#.cross.query.weight", "decoder.block.#.layer.1.EncDecAttention.q.weight",
     "(m g d) e -> m g d e"},
    {"decoder.#.cross.key_value.weight",
     "decoder.block.#.layer.1.EncDecAttention.k.weight"
     "|decoder.block.#.layer.1.EncDecAttention.v.weight",
     "(m x d) e -> m x d e", "11"},
    {"decoder.#.cross.projection.weight", "decoder.block.#.layer.1.EncDecAttention.o.weight",
     "e q -> e q"},
    {"decoder.#.norm_2.gain", "decoder.block.#.layer.2.layer_norm.weight", "e -> e"},
    {"decoder.#.mlp.up.weight", "decoder.block.#.layer.2.DenseReluDense.wi.weight", "f e -> f e"},
    {"decoder.#.mlp.up.weight",
     "decoder.block.#.layer.2.DenseReluDense.wi_0.weight"
     "|decoder.block.#.layer.2.DenseReluDense.wi_1.weight",
     kBothGates, "11"},
    {"decoder.#.mlp.down.weight", "decoder.block.#.layer.2.DenseReluDense.wo.weight", "e f -> e f"},
    {"final_norm.gain", "decoder.final_layer_norm.weight", "e -> e"},
    {"head.weight", "lm_head.weight", "v e -> v e"},
};

// Copies of the shared table, and a table that the first releases had and never used.
constexpr std::string_view kIgnored[] = {"encoder.embed_tokens.weight",
                                         "decoder.embed_tokens.weight",
                                         "EncDecAttention.relative_attention_bias.weight"};

void config(HfConfig& c, ModelOptions& o) {
  T5Options& own = o.own<T5Options>();
  c.size({"vocab_size"}, o.vocabulary.size, 32128);
  c.size({"d_model"}, o.hidden_size, 512);
  c.size({"d_kv"}, o.attention.head_dim, 64);
  c.size({"d_ff"}, o.mlp.ffn, 2048);
  c.size({"num_layers"}, o.num_layers, 6);
  own.decoder_layers = c.reading() ? 0 : num_t5_decoder_layers(o);
  c.size({"num_decoder_layers"}, own.decoder_layers, o.num_layers);
  c.size({"num_heads"}, o.attention.num_heads, 8);
  c.fixed(o.attention.num_groups, o.attention.num_heads, "heads share keys and values");
  c.size({"relative_attention_num_buckets"}, o.positions.relative_buckets, 32);
  c.size({"relative_attention_max_distance"}, o.positions.relative_distance, 128);
  c.number("layer_norm_epsilon", o.norm.epsilon, 1e-6, 0, 1);
  c.number("dropout_rate", o.residual.dropout, 0.1, 0, 1);
  c.absent(o.attention.dropout, o.residual.dropout);
  c.absent(o.mlp.dropout, o.residual.dropout);
  c.activation("feed_forward_proj", o.mlp.kind,
               {{"relu", MlpKind::relu}, {"gated-gelu", MlpKind::geglu_tanh}});
  // The weights decide whether the output has a matrix of its own, whatever is said here. Older
  // versions of transformers scale if it has none.
  bool tied = !o.vocabulary.untied;
  c.flag("tie_word_embeddings", tied, true);
  c.absent(o.vocabulary.untied, false);
  c.flag("scale_decoder_outputs", own.head_scale, tied);
  c.only("is_encoder_decoder", true, "a part of a model is not supported");
  c.none("quantization_config", "quantized weights are not supported");
  c.tokens(o.vocabulary.size, {.eos = 1, .pad = 0});
  c.decoder_start(o.vocabulary.size, 0);
  c.fixed(o.bias, false, "");
  c.fixed(o.attention.qkv_bias, false, "its queries, keys and values have biases");
  c.fixed(o.attention.output_bias, false, "the output of its attention has a bias");
  c.fixed(o.mlp.bias, false, "its feed-forward layers have biases");
  c.fixed(own.head_bias, false, "its logits have a bias");
  c.fixed(o.norm.kind, NormKind::rms, "its norms are not RMS norms");
  c.fixed(o.norm.one_plus_gain, false, "its norms multiply by 1 + gain");
  c.fixed(o.positions.learned, false, "it has a table of positions");
  c.extras(o, {});
  c.fixed(o.attention.scale, 1.0, "its attention scores are scaled");
  c.fixed(own.cross_mask, true, "its decoder sees padding of the encoder's sequences");
  c.absent(own.dropout_after_norm, true);
}

constexpr HuggingFace kT5 = {.model_type = "t5",
                             .architecture = "T5ForConditionalGeneration",
                             .prefix = "",
                             .output = "lm_head.weight",
                             .tensors = kTensors,
                             .ignored = kIgnored,
                             .config = config};

void defaults(ModelOptions& o) {
  o.attention.dropout = o.residual.dropout = 0.1f;
  o.own<T5Options>();
}

void describe(OptionTable& t, ModelOptions& o) {
  T5Options& own = o.own<T5Options>();
  t.section("encoder and decoder");
  t.add("decoder-num-layers", own.decoder_layers,
        "Number of decoder layers; 0: as many as encoder layers.", between(0, 1e6));
  t.add("relative-attention-num-buckets", o.positions.relative_buckets,
        "Number of buckets of the relative position bias; 0: no relative positions.",
        between(0, 128));
  t.add("relative-attention-max-distance", o.positions.relative_distance,
        "Distance from which all positions share a bucket.", between(1, 1024));
  t.add("attention-scale", o.attention.scale,
        "Scaling of attention scores; none: 1 / sqrt(head size).");
  t.add("cross-attention-mask", own.cross_mask,
        "Mask the padding of the encoder's sequences in cross attention. Megatron-DeepSpeed has "
        "not masked it since 2023.")
      .off("Do not mask the padding of the encoder's sequences, as Megatron-DeepSpeed since 2023.");
  t.add("output-bias", own.head_bias, "Add a bias to the logits.")
      .off("Leave out the bias of the logits.");
  t.add("scale-decoder-outputs", own.head_scale,
        "Multiply the input of the output layer by 1 / sqrt(hidden size).");
  t.add("ffn-dropout", o.mlp.dropout, "Dropout of the MLP's activations.", from_to_below(0, 1));
  t.add("final-norm-dropout", own.dropout_after_norm,
        "Apply dropout to the output of encoder and decoder.");
}

std::vector<std::string> t5_problems(const ModelOptions& o, const MeshDegrees& degrees) {
  Findings f;
  const PositionOptions& p = o.positions;
  f.require(degrees.context == 1,
            "sequences of an encoder and a decoder cannot be divided: leave out "
            "--ds-sequence-parallel-size, --context-parallel-size");
  f.require(!p.rotary,
            "rotary positions of an encoder and a decoder are not supported: give "
            "--relative-attention-num-buckets, or learned positions");
  f.require(!o.residual.parallel && !o.residual.after_norm,
            "layers of an encoder and a decoder come one after another, with the residual before "
            "the norm");
  f.require(o.attention.window == 0 && !o.attention.head_norm,
            "windows and norms of heads of an encoder and a decoder are not supported");
  const std::int64_t buckets = p.relative_buckets;
  f.require(buckets == 0 || (buckets >= 4 && buckets % 2 == 0 && p.relative_distance > buckets / 2),
            "--relative-attention-num-buckets ", buckets,
            ": it must be even, at least 4 and less than twice "
            "--relative-attention-max-distance ",
            p.relative_distance);
  f.require(degrees.tensor == 1 || o.mlp.dropout == 0 || o.mlp.ffn / degrees.tensor % 8 == 0,
            "--ffn-dropout: feed-forward size ", o.mlp.ffn, " over ", degrees.tensor,
            " tensor-parallel ranks must be a multiple of 8");
  f.require(o.mlp.dropout >= 0 && o.mlp.dropout < 1, "dropout probability ", o.mlp.dropout,
            " is not in [0, 1)");
  return f.found;
}

std::vector<std::string> megatron_problems(const ModelOptions& o) {
  Findings f;
  const T5Options& own = o.own<T5Options>();
  f.require(own.head_bias && !own.head_scale, "output layer of that form");
  return f.found;
}

std::vector<MegatronArgument> megatron_arguments(const ModelOptions& o) {
  return {{"decoder_num_layers", num_t5_decoder_layers(o)}};
}

}  // namespace

const Family& t5_family() {
  static constexpr Family kFamily = {.name = "t5",
                                     .summary = "T5: an encoder and a decoder",
                                     .dataset = "t5",
                                     .defaults = defaults,
                                     .describe = describe,
                                     .problems = t5_problems,
                                     .num_blocks = num_t5_blocks,
                                     .decoder_begin = t5_decoder_begin,
                                     .blocks = t5_blocks,
                                     .hugging_face = &kT5,
                                     .megatron = {.tensors = kMegatronT5,
                                                  .own_names = "language_model.decoder.",
                                                  .problems = megatron_problems,
                                                  .arguments = megatron_arguments}};
  return kFamily;
}

}  // namespace bloomery
