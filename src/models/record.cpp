#include "models/record.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/json_fields.h"
#include "config/option_table.h"
#include "models/family.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 2;

void describe_record(OptionTable& table, ModelOptions& options) {
  table.section("record");
  table.add("vocabulary-size", options.vocabulary.size, "Tokens, without padding.",
            between(1, 1e9));
  describe_model(table, options);
}

// Version 1 knew one family, under names of its own.
constexpr std::pair<const char*, const char*> kFirstNames[] = {
    {"num_layers", "num-layers"},
    {"hidden_size", "hidden-size"},
    {"num_heads", "num-attention-heads"},
    {"num_key_value_heads", "num-key-value-heads"},
    {"head_dim", "kv-channels"},
    {"ffn_hidden_size", "ffn-hidden-size"},
    {"vocabulary", "vocabulary-size"},
    {"make_vocabulary_divisible_by", "make-vocab-size-divisible-by"},
    {"max_positions", "max-position-embeddings"},
    {"norm_epsilon", "layernorm-epsilon"},
    {"norm_one_plus_gain", "apply-layernorm-1p"},
    {"bias", "add-bias-linear"},
    {"rotary_fraction", "rotary-percent"},
    {"rotary_base", "rotary-position-embeddings-theta"},
    {"rotary_interleaved", "rotary-interleaved"},
    {"post_norm_residual", "apply-residual-connection-post-layernorm"},
    {"fp32_residual", "fp32-residual-connection"},
    {"padded_vocabulary_in_softmax", "padded-vocab-in-softmax"},
    {"attention_dropout", "attention-dropout"},
    {"hidden_dropout", "hidden-dropout"},
    {"init_std", "init-method-std"},
    {"xavier_init", "init-method-xavier-uniform"},
};

Json from_first_version(const JsonFields& old) {
  Json now = {{"family", "gpt"}};
  for (const auto& [before, after] : kFirstNames) {
    now[after] = Json::parse(old.json(before));
  }
  if (old.count("ffn_hidden_size") == 0) {
    now["ffn-hidden-size"] = 4 * static_cast<std::uint64_t>(old.count("hidden_size"));
  }
  const bool gated = old.get<bool>("gated");
  const std::pair<const char*, std::pair<const char*, const char*>> activations[] = {
      {"gelu_tanh", {"gelu-tanh", "geglu-tanh"}},
      {"gelu_erf", {"gelu", "geglu"}},
      {"silu", {"silu", "swiglu"}},
      {"relu", {"relu", "reglu"}},
      {"squared_relu", {"squared-relu", "squared-relu"}}};
  const auto activation = old.get<std::string>("activation");
  now["activation"] = activation;
  for (const auto& [name, words] : activations) {
    if (activation == name) {
      now["activation"] = gated ? words.second : words.first;
    }
  }
  const auto positions = old.get<std::string>("positions");
  now["normalization"] = old.get<std::string>("norm") == "rms" ? "rmsnorm" : "layernorm";
  now["untie-embeddings-and-output-weights"] = !old.get<bool>("tied");
  now["use-rotary-position-embeddings"] = positions == "rotary";
  now["position-embedding"] = positions == "learned";
  return now;
}

constexpr const char* kTargets = "lora-target-modules";
constexpr const char* kAdapter[] = {"lora", "lora-rank", "lora-alpha", "use-rslora",
                                    "lora-dropout"};

// Only training asks for them.
constexpr std::string_view kFree[] = {
    "make-vocab-size-divisible-by",
    "add-bias-linear",
    "bias-gelu-fusion",
    "fp32-residual-connection",
    "padded-vocab-in-softmax",
    "init-method-std",
    "init-method-xavier-uniform",
    "attention-dropout",
    "hidden-dropout",
    "moe-balance-all-choices",
    "moe-input-jitter-eps",
    "moe-loss-coeff",
    "moe-train-capacity-factor",
    "moe-z-loss-coeff",
    "ffn-dropout",
    "lora-dropout",
    "neftune-noise-alpha",
    "final-norm-dropout",
    "embedding-dropout-after-norm",
    "retriever-score-scaling",
    "retriever-report-topk-accuracies",
};

// Names in older records that say nothing about a model any more.
constexpr std::string_view kFormer[] = {"family", "version", "fp16-lm-cross-entropy"};

// What a mixture is by layer, however it was written down. Without experts nothing of it counts.
MoeOptions by_layer(const MoeOptions& moe, std::int64_t num_layers) {
  if (!moe.any()) {
    return {};
  }
  MoeOptions o = moe;
  o.num_experts.clear();
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    o.num_experts.push_back(moe.experts_of(layer));
  }
  o.interval = 1;
  o.dense_layers.clear();
  const MoeOptions none;
  if (!o.drop_tokens) {  // then there is no capacity
    o.eval_capacity = none.eval_capacity;
    o.min_capacity = none.min_capacity;
  }
  if (!o.drop_tokens || o.topk != 1) {
    o.random_selection = none.random_selection;
  }
  if (o.topk != 2) {
    o.sample_second = none.sample_second;
  }
  return o;
}

// The options of a completed model with those that have no effect in it at their defaults, so that
// two models of one structure are equal.
ModelOptions structure(ModelOptions o) {
  o.moe = by_layer(o.moe, o.num_layers);
  const auto& experts = o.moe.num_experts;
  if (o.moe.kind == MoeKind::standard && std::ranges::find(experts, 1) == experts.end()) {
    o.mlp.ffn = o.moe.ffn;  // no layer has an MLP
  }
  PositionOptions& p = o.positions;
  if (!p.has_table()) {
    p.max_length = 0;
  }
  if (!p.rotary) {
    const PositionOptions none;
    p.rotary_fraction = none.rotary_fraction;
    p.rotary_base = none.rotary_base;
    p.rotary_interleaved = none.rotary_interleaved;
    p.scaling = none.scaling;
  } else if (p.scaling.kind == RotaryScaling::Kind::none) {
    p.scaling = {};
  }
  return o;
}

// Whether the options of adapters count, and those that training does not ask for alone.
bool compared(const std::string& name, bool adapters) {
  if (name.starts_with("lora-") || name == "use-rslora") {
    return adapters && name != "lora-dropout";
  }
  return std::ranges::find(kFree, name) == std::end(kFree);
}

}  // namespace

std::string to_record(const ModelOptions& options) {
  ModelOptions all = completed(options);
  OptionTable table;
  describe_record(table, all);
  Json object = {{"version", kVersion}, {"family", all.family}};
  object.update(Json::parse(table.json()));
  return object.dump();
}

ModelOptions from_record(std::string_view json, const std::string& place,
                         std::vector<std::string>& notes) {
  JsonFields fields(json, place);
  if (fields.kind("version") == JsonFields::Kind::absent) {
    fields = JsonFields(from_first_version(fields).dump(), place);
  }
  ModelOptions options;
  fields.read("family", options.family);
  OptionTable table;
  describe_record(table, options);
  const std::vector<std::string> known = table.names();
  Json readable = Json::object();
  for (const std::string& name : fields.names()) {
    if (std::ranges::find(known, name) != known.end()) {
      readable[name] = Json::parse(fields.json(name));
    } else if (std::ranges::find(kFormer, name) == std::end(kFormer)) {
      notes.push_back(concat(place, ": has ", name, " = ", fields.json(name),
                             ", which is unknown here and "
                             "left out; a newer program wrote it"));
    }
  }
  table.read_json(readable.dump(), place);
  table.finish();
  std::string all;
  for (const std::string& problem : problems(options, {})) {
    all += "\n  " + problem;
  }
  check(all.empty(), place, ": this model cannot be built:", all);
  return completed(options);
}

void read_record(OptionTable& table, const ModelOptions& stored, const std::string& place) {
  Json rows = Json::parse(to_record(stored));
  for (const char* name : {"version", "family", "vocabulary-size"}) {
    rows.erase(name);
  }
  for (const std::string_view name : kFree) {
    if (rows.contains(name) && table.given(name)) {  // some families alone have it
      rows.erase(std::string(name));
    }
  }
  for (const char* name : {"max-position-embeddings", "position-embedding"}) {
    if (!stored.positions.has_table() && table.given(name)) {
      rows.erase(name);  // it says nothing about this model
    }
  }
  if (!stored.adapter.enabled || table.given(kTargets)) {  // words that still are to be understood
    rows.erase(kTargets);
  }
  if (!stored.adapter.enabled) {  // what stands beside its weights is for the flags to say
    for (const char* name : kAdapter) {
      rows.erase(name);
    }
  }
  table.read_json(rows.dump(), place);
}

std::vector<std::string> model_differences(const ModelOptions& here, const ModelOptions& stored) {
  std::vector<std::string> found;
  if (find_family(here.family).blocks != find_family(stored.family).blocks) {
    found.push_back(
        concat("family: ", here.family, " here, ", stored.family, " in the checkpoint"));
    return found;
  }
  ModelOptions a = structure(completed(here)), b = structure(completed(stored));
  OptionTable mine, theirs;
  describe_record(mine, a);
  describe_record(theirs, b);
  const bool adapters = a.adapter.enabled && b.adapter.enabled;
  for (const OptionDifference& difference : differences(mine, theirs)) {
    if (compared(difference.name, adapters)) {
      found.push_back(concat(difference.name, ": ", difference.before, " here, ", difference.after,
                             " in the checkpoint"));
    }
  }
  return found;
}

}  // namespace bloomery
