// BERT as Megatron trains it: with norms in front of the branches or, where residuals branch off
// after the norm, in the order of the original. Its Hugging Face forms are megatron-bert and bert.
#include <array>

#include "base/findings.h"
#include "config/option_table.h"
#include "models/decoder.h"
#include "models/family.h"
#include "models/megatron.h"
#include "nn/masked_head.h"
#include "nn/task_head.h"

namespace bloomery {
namespace {

constexpr TensorRule kCommon[] = {
    {"embedding.tokens.weight", "bert.embeddings.word_embeddings.weight", "v e -> v e"},
    {"embedding.positions.weight", "bert.embeddings.position_embeddings.weight", "p e -> p e"},
    {"embedding.token_types.weight", "bert.embeddings.token_type_embeddings.weight", "s e -> s e"},
    {"blocks.#.attention.qkv.weight",
     "bert.encoder.layer.#.attention.self.query.weight|"
     "bert.encoder.layer.#.attention.self.key.weight|"
     "bert.encoder.layer.#.attention.self.value.weight",
     "(m x d) e -> m x d e", "g11"},
    {"blocks.#.attention.qkv.bias",
     "bert.encoder.layer.#.attention.self.query.bias|"
     "bert.encoder.layer.#.attention.self.key.bias|"
     "bert.encoder.layer.#.attention.self.value.bias",
     "(m x d) -> m x d", "g11"},
    {"blocks.#.attention.projection.weight", "bert.encoder.layer.#.attention.output.dense.weight",
     "e q -> e q"},
    {"blocks.#.attention.projection.bias", "bert.encoder.layer.#.attention.output.dense.bias",
     "e -> e"},
    {"blocks.#.mlp.up.weight", "bert.encoder.layer.#.intermediate.dense.weight", "f e -> f e"},
    {"blocks.#.mlp.up.bias", "bert.encoder.layer.#.intermediate.dense.bias", "f -> f"},
    {"blocks.#.mlp.down.weight", "bert.encoder.layer.#.output.dense.weight", "e f -> e f"},
    {"blocks.#.mlp.down.bias", "bert.encoder.layer.#.output.dense.bias", "e -> e"},
    {"pooler.weight", "bert.pooler.dense.weight", "e w -> e w"},
    {"pooler.bias", "bert.pooler.dense.bias", "e -> e"},
    {"head.transform.weight", "cls.predictions.transform.dense.weight", "e w -> e w"},
    {"head.transform.bias", "cls.predictions.transform.dense.bias", "e -> e"},
    {"head.norm.gain", "cls.predictions.transform.LayerNorm.weight", "e -> e"},
    {"head.norm.bias", "cls.predictions.transform.LayerNorm.bias", "e -> e"},
    {"head.weight", "cls.predictions.decoder.weight", "v e -> v e"},
    {"head.bias", "cls.predictions.bias", "v -> v"},
    {"binary_head.weight", "cls.seq_relationship.weight", "b e -> b e"},
    {"binary_head.bias", "cls.seq_relationship.bias", "b -> b"},
    {"classification_head.weight", "classifier.weight", "c e -> c e"},
    {"classification_head.bias", "classifier.bias", "c -> c"},
    {"multichoice_head.weight", "classifier.weight", "1 e -> 1 e"},
    {"multichoice_head.bias", "classifier.bias", "1 -> 1"},
};

// Norms in front of the branches.
constexpr TensorRule kMegatronNorms[] = {
    {"blocks.#.norm_1.gain", "bert.encoder.layer.#.attention.ln.weight", "e -> e"},
    {"blocks.#.norm_1.bias", "bert.encoder.layer.#.attention.ln.bias", "e -> e"},
    {"blocks.#.norm_2.gain", "bert.encoder.layer.#.ln.weight", "e -> e"},
    {"blocks.#.norm_2.bias", "bert.encoder.layer.#.ln.bias", "e -> e"},
    {"final_norm.gain", "bert.encoder.ln.weight", "e -> e"},
    {"final_norm.bias", "bert.encoder.ln.bias", "e -> e"},
};

// A norm behind a branch is the one in front of the next: that of the embedding is our first one.
constexpr TensorRule kOriginalNorms[] = {
    {"blocks.0.norm_1.gain", "bert.embeddings.LayerNorm.weight", "e -> e"},
    {"blocks.0.norm_1.bias", "bert.embeddings.LayerNorm.bias", "e -> e"},
    {"blocks.#.norm_1.gain", "bert.encoder.layer.<.output.LayerNorm.weight", "e -> e"},
    {"blocks.#.norm_1.bias", "bert.encoder.layer.<.output.LayerNorm.bias", "e -> e"},
    {"blocks.#.norm_2.gain", "bert.encoder.layer.#.attention.output.LayerNorm.weight", "e -> e"},
    {"blocks.#.norm_2.bias", "bert.encoder.layer.#.attention.output.LayerNorm.bias", "e -> e"},
    {"final_norm.gain", "bert.encoder.layer.$.output.LayerNorm.weight", "e -> e"},
    {"final_norm.bias", "bert.encoder.layer.$.output.LayerNorm.bias", "e -> e"},
};

template <std::size_t kFirst, std::size_t kSecond>
constexpr auto joined(const TensorRule (&first)[kFirst], const TensorRule (&second)[kSecond]) {
  std::array<TensorRule, kFirst + kSecond> all{};
  std::copy(first, first + kFirst, all.begin());
  std::copy(second, second + kSecond, all.begin() + kFirst);
  return all;
}
constexpr auto kMegatronTensors = joined(kCommon, kMegatronNorms);
constexpr auto kOriginalTensors = joined(kCommon, kOriginalNorms);

// Buffers, the second name of a tied bias, and what a model without the binary head does not use.
constexpr std::string_view kIgnored[] = {"embeddings.position_ids", "predictions.decoder.bias"};
constexpr std::string_view kIgnoredWithoutPooler[] = {
    "embeddings.position_ids", "predictions.decoder.bias", "pooler.dense.weight",
    "pooler.dense.bias",       "seq_relationship.weight",  "seq_relationship.bias"};

// What transformers takes where config.json does not say it.
struct Sizes {
  std::int64_t vocabulary, hidden, layers, heads, ffn;
};
constexpr Sizes kOriginalSizes = {30522, 768, 12, 12, 3072};
constexpr Sizes kMegatronSizes = {29056, 1024, 24, 16, 4096};

void read_activations(HfConfig& c, ModelOptions& o) {
  c.require(!o.mlp.gated(), "its feed-forward layers are gated");
  c.activation("hidden_act", o.mlp.kind, "gelu", false);
  if (c.reading()) {
    o.head_activation = o.mlp.kind;
  } else if (o.head_activation != o.mlp.kind) {
    c.note(
        "its head has another activation than its feed-forward layers, for which config.json has "
        "no word: in transformers the head will have theirs, and logits will differ a little. "
        "Models trained with --openai-gelu or --no-bias-gelu-fusion have one activation.");
  }
}

void read_layers(HfConfig& c, ModelOptions& o) {
  c.fixed(o.positions.rotary, false, "its positions are not learned");
  c.fixed(o.positions.learned, true, "it has no table of positions");
  c.fixed(o.norm.kind, NormKind::layer, "its norms are not layer norms");
  c.fixed(o.norm.one_plus_gain, false, "its norms multiply by 1 + gain");
  c.fixed(o.attention.qkv_bias, true, "its queries, keys and values have no biases");
  c.fixed(o.attention.output_bias, true, "the output of its attention has no bias");
  c.fixed(o.mlp.bias, true, "its feed-forward layers have no biases");
  c.fixed(o.residual.parallel, false, "attention and feed-forward layer stand side by side");
  c.fixed(o.attention.num_groups, o.attention.num_heads, "heads share keys and values");
  c.require(o.hidden_size % o.attention.num_heads == 0,
            concat("num_attention_heads ", o.attention.num_heads, " does not divide hidden_size ",
                   o.hidden_size));
  c.fixed(o.attention.head_dim, o.hidden_size / o.attention.num_heads,
          "its heads together are not as wide as the model");
}

enum class Head { pre_training, masked, classes, choice };

// Classes are those of id2label; a model of one is trained to tell a number, as in transformers.
template <Head kHead>
void read_head(HfConfig& c, ModelOptions& o) {
  constexpr bool kBinary = kHead == Head::pre_training;
  c.fixed(o.segments.binary_head, kBinary,
          kBinary ? "it has no binary head" : "it has a binary head");
  TaskHeadKind& kind = o.task.kind;
  if constexpr (kHead == Head::classes) {
    std::int64_t outputs = o.task.outputs();
    c.labels(outputs);
    if (c.reading()) {
      kind = outputs == 1 ? TaskHeadKind::regression : TaskHeadKind::classification;
      o.task.classes = outputs == 1 ? o.task.classes : outputs;
    }
    c.require(o.task.any() && kind != TaskHeadKind::multiple_choice, "it does not tell classes");
    c.require(kind != TaskHeadKind::classification || o.task.classes > 1,
              "with one class it would be trained to tell a number");
  } else {
    constexpr bool kChoice = kHead == Head::choice;
    c.fixed(kind, kChoice ? TaskHeadKind::multiple_choice : TaskHeadKind::none,
            kChoice ? "it does not choose among sequences" : "it has the head of a task");
  }
}

template <bool kAfterNorm, Head kHead>
void config(HfConfig& c, ModelOptions& o) {
  const Sizes sizes = kAfterNorm ? kOriginalSizes : kMegatronSizes;
  c.size({"vocab_size"}, o.vocabulary.size, sizes.vocabulary);
  c.size({"hidden_size"}, o.hidden_size, sizes.hidden);
  c.size({"num_hidden_layers"}, o.num_layers, sizes.layers);
  c.size({"num_attention_heads"}, o.attention.num_heads, sizes.heads);
  c.size({"intermediate_size"}, o.mlp.ffn, sizes.ffn);
  c.size({"max_position_embeddings"}, o.positions.max_length, 512);
  std::int64_t token_types = o.segments.token_types.value_or(2);
  c.size({"type_vocab_size"}, token_types, 2);
  c.require(token_types > 0, "it has no table of token types, which transformers always has");
  o.segments.token_types = token_types;
  read_activations(c, o);
  c.number("layer_norm_eps", o.norm.epsilon, 1e-12, 0, 1);
  c.number("initializer_range", o.init.std, 0.02, 0, 1e6);
  c.number("hidden_dropout_prob", o.residual.dropout, 0.1, 0, 1);
  c.number("attention_probs_dropout_prob", o.attention.dropout, 0.1, 0, 1);
  c.opposite("tie_word_embeddings", o.vocabulary.untied, true);
  c.tokens(o.vocabulary.size, {.pad = 0});
  c.only("is_decoder", false, "BERT that generates is not supported");
  c.only("add_cross_attention", false, "attention to an encoder is not supported");
  c.only_word("position_embedding_type", "absolute", "positions of this kind are not supported");
  c.none("quantization_config", "quantized weights are not supported");
  read_layers(c, o);
  c.fixed(o.residual.after_norm, kAfterNorm,
          kAfterNorm ? "its norms stand in front of the branches"
                     : "its residuals branch off after the norm");
  c.absent(o.residual.embedding_dropout_after_norm, kAfterNorm);
  read_head<kHead>(c, o);
}

constexpr HuggingFace kForms[] = {{.model_type = "bert",
                                   .architecture = "BertForPreTraining",
                                   .output = "cls.predictions.decoder.weight",
                                   .tensors = kOriginalTensors,
                                   .ignored = kIgnored,
                                   .config = config<true, Head::pre_training>},
                                  {.model_type = "bert",
                                   .architecture = "BertForMaskedLM",
                                   .output = "cls.predictions.decoder.weight",
                                   .tensors = kOriginalTensors,
                                   .ignored = kIgnoredWithoutPooler,
                                   .config = config<true, Head::masked>},
                                  {.model_type = "bert",
                                   .architecture = "BertForSequenceClassification",
                                   .tensors = kOriginalTensors,
                                   .ignored = kIgnored,
                                   .config = config<true, Head::classes>},
                                  {.model_type = "bert",
                                   .architecture = "BertForMultipleChoice",
                                   .tensors = kOriginalTensors,
                                   .ignored = kIgnored,
                                   .config = config<true, Head::choice>},
                                  {.model_type = "megatron-bert",
                                   .architecture = "MegatronBertForPreTraining",
                                   .output = "cls.predictions.decoder.weight",
                                   .tensors = kMegatronTensors,
                                   .ignored = kIgnored,
                                   .config = config<false, Head::pre_training>},
                                  {.model_type = "megatron-bert",
                                   .architecture = "MegatronBertForMaskedLM",
                                   .output = "cls.predictions.decoder.weight",
                                   .tensors = kMegatronTensors,
                                   .ignored = kIgnoredWithoutPooler,
                                   .config = config<false, Head::masked>},
                                  {.model_type = "megatron-bert",
                                   .architecture = "MegatronBertForSequenceClassification",
                                   .tensors = kMegatronTensors,
                                   .ignored = kIgnored,
                                   .config = config<false, Head::classes>},
                                  {.model_type = "megatron-bert",
                                   .architecture = "MegatronBertForMultipleChoice",
                                   .tensors = kMegatronTensors,
                                   .ignored = kIgnored,
                                   .config = config<false, Head::choice>}};

void defaults(ModelOptions& o) {
  o.attention.dropout = o.residual.dropout = 0.1f;
  o.segments.binary_head = true;
}

void describe(OptionTable& t, ModelOptions& o) {
  t.section("BERT");
  t.add("bert-binary-head", o.segments.binary_head,
        "Train a binary head that predicts whether two segments were swapped.")
      .off("Train without the binary head.")
      .shorthand("bert-no-binary-head", "false");
  t.add("num-token-types", o.segments.token_types,
        "Rows of the token type table; none: 2 with a binary head, otherwise 0.", between(0, 1e6));
  t.add("lm-head-activation", o.head_activation,
        "Activation of the output head. auto follows Megatron: erf GELU, and tanh GELU with "
        "--openai-gelu.",
        {{"auto", MlpKind::automatic},
         {"gelu-tanh", MlpKind::gelu_tanh},
         {"gelu", MlpKind::gelu_erf},
         {"silu", MlpKind::silu},
         {"relu", MlpKind::relu},
         {"squared-relu", MlpKind::squared_relu}});
  t.add("task-head", o.task.kind,
        "Head of a task instead of BERT's own head; finetune --task sets it.",
        {{"none", TaskHeadKind::none},
         {"classification", TaskHeadKind::classification},
         {"regression", TaskHeadKind::regression},
         {"multiple-choice", TaskHeadKind::multiple_choice}});
  t.add("task-classes", o.task.classes, "Number of classes.", between(2, 1e6));
  t.add("embedding-dropout-after-norm", o.residual.embedding_dropout_after_norm,
        "With --apply-residual-connection-post-layernorm: apply dropout after the normalization of "
        "embeddings, as the original BERT; Megatron applies it before.");
}

std::vector<std::string> bert_problems(const ModelOptions& o, const MeshDegrees& degrees) {
  Findings f;
  f.require(degrees.context == 1,
            "BERT's sequences cannot be divided among ranks (--ds-sequence-parallel-size, "
            "--context-parallel-size)");
  f.require(!o.residual.embedding_dropout_after_norm || o.residual.after_norm,
            "embedding-dropout-after-norm needs apply-residual-connection-post-layernorm");
  f.require(!o.task.any() || !o.segments.binary_head,
            "the head of a task takes the place of the binary head: give --bert-no-binary-head");
  f.require(!o.segments.binary_head || *o.segments.token_types != 1,
            "a binary head needs two token types");
  return f.found;
}

std::vector<std::string> megatron_problems(const ModelOptions& o) {
  Findings f;
  f.require(o.segments.token_types == (o.segments.binary_head ? 2 : 0),
            "token types but for a binary head, and two of them");
  f.require(o.head_activation == MlpKind::gelu_erf ||
                (o.head_activation == MlpKind::gelu_tanh && o.mlp.kind == MlpKind::gelu_tanh),
            "its activation in the head");
  return f.found;
}

std::vector<MegatronArgument> megatron_arguments(const ModelOptions& o) {
  return {{"bert_binary_head", o.segments.binary_head}};
}

Blocks blocks(const ModelOptions& options, const Mesh& mesh, DType dtype, BlockRange slice) {
  ModelOptions o = options;
  o.attention.causal = false;
  return stacked_blocks(
      o, mesh, dtype, slice,
      [&](std::shared_ptr<Parameter> weight, std::int64_t first_token) -> std::unique_ptr<Block> {
        if (o.task.any()) {
          return std::make_unique<TaskHead>(o, mesh);
        }
        return std::make_unique<MaskedHead>(o, mesh, std::move(weight), first_token);
      });
}

}  // namespace

const Family& bert_family() {
  static constexpr Family kFamily = {.name = "bert",
                                     .summary = "BERT, Megatron's and the original",
                                     .dataset = "bert",
                                     .defaults = defaults,
                                     .describe = describe,
                                     .problems = bert_problems,
                                     .num_blocks = num_decoder_blocks,
                                     .head = FamilyHead::masked_tokens,
                                     .blocks = blocks,
                                     .hugging_face = kForms,
                                     .megatron = {.tensors = kMegatronBert,
                                                  .own_names = "lm_head.dense.",
                                                  .problems = megatron_problems,
                                                  .arguments = megatron_arguments}};
  return kFamily;
}

}  // namespace bloomery
