#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "checkpoint/hf/gpt2.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

struct ActivationName {
  std::string_view theirs;
  Activation ours;
};
// The first name of each is what we write. The other spellings compute the same function.
constexpr ActivationName kActivations[] = {
    {"gelu_new", Activation::gelu_tanh},
    {"gelu", Activation::gelu_erf},
    {"relu", Activation::relu},
    {"relu2", Activation::squared_relu},
    {"silu", Activation::silu},
    {"swish", Activation::silu},
    {"gelu_python", Activation::gelu_erf},
    {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"gelu_python_tanh", Activation::gelu_tanh},
    {"gelu_fast", Activation::gelu_tanh},
    {"gelu_accurate", Activation::gelu_tanh},
};

// Reads keys one by one and collects what is wrong with them.
class ConfigReader {
 public:
  ConfigReader(std::string_view text, const std::string& source) : source_(source) {
    try {
      json_ = Json::parse(text);
    } catch (const Json::exception& error) {
      throw Error(concat(source, ": not valid JSON: ", error.what()));
    }
    check(json_.is_object(), source, ": not a JSON object");
  }

  // The value of the first of the keys that is there and not null; null otherwise.
  Json find(std::initializer_list<const char*> keys) const {
    for (const char* key : keys) {
      const auto found = json_.find(key);
      if (found != json_.end() && !found->is_null()) {
        return *found;
      }
    }
    return nullptr;
  }

  std::int64_t size(std::initializer_list<const char*> keys, std::int64_t otherwise) {
    const Json value = find(keys);
    if (value.is_null()) {
      return otherwise;
    }
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    const bool good = value.is_number_integer() && value > 0 && value <= kMost;
    require(good, *keys.begin(), value, "must be an integer from 1 to 2147483647");
    return good ? value.get<std::int64_t>() : otherwise;
  }

  double number(const char* key, double otherwise, double low, double high) {
    const Json value = find({key});
    if (value.is_null()) {
      return otherwise;
    }
    const bool good = value.is_number() && value >= low && value <= high;
    require(good, key, value, concat("must be a number from ", low, " to ", high).c_str());
    return good ? value.get<double>() : otherwise;
  }

  bool flag(const char* key, bool otherwise) {
    const Json value = find({key});
    if (value.is_null()) {
      return otherwise;
    }
    require(value.is_boolean(), key, value, "must be true or false");
    return value.is_boolean() ? value.get<bool>() : otherwise;
  }

  // An id, the first one of a list; `otherwise` is that of an absent key. None is outside of the
  // vocabulary.
  std::optional<std::int64_t> token(const char* key, std::int64_t vocabulary,
                                    const Json& otherwise) const {
    Json value = json_.contains(key) ? find({key}) : otherwise;
    if (value.is_array() && !value.empty()) {
      value = Json(value[0]);
    }
    const bool good = value.is_number_integer() && value >= 0 && value < vocabulary;
    return good ? std::optional(value.get<std::int64_t>()) : std::nullopt;
  }

  void require(bool good, const char* key, const Json& value, const char* why) {
    if (!good) {
      std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
      text.resize(std::min<std::size_t>(text.size(), 80));
      problems_ += concat("\n  ", key, " ", text, ": ", why);
    }
  }

  void finish() const {
    check(problems_.empty(), source_, ": this model cannot be read:", problems_);
  }

 private:
  const std::string& source_;
  Json json_;
  std::string problems_;
};

void read_kind(ConfigReader& reader) {
  const Json kind = reader.find({"model_type"});
  const Json classes = reader.find({"architectures"});
  const bool named = classes.is_array() && !classes.empty() && classes[0].is_string() &&
                     classes[0].get<std::string>().starts_with("GPT2");
  reader.require(kind == "gpt2" || (kind.is_null() && named), "model_type", kind,
                 "only gpt2 can be read");
}

Activation read_activation(ConfigReader& reader) {
  const Json value = reader.find({"activation_function"});
  if (value.is_null()) {
    return Activation::gelu_tanh;
  }
  for (const ActivationName& known : kActivations) {
    if (value == known.theirs) {
      return known.ours;
    }
  }
  reader.require(false, "activation_function", value, "this function is not supported");
  return Activation::none;
}

// What would change numbers and has only one supported value. reorder_and_upcast_attn does not:
// attention scores are fp32 here in any case.
void refuse_variants(ConfigReader& reader) {
  reader.require(reader.flag("scale_attn_weights", true), "scale_attn_weights", false,
                 "scores without the factor 1/sqrt(head size) are not supported");
  reader.require(!reader.flag("scale_attn_by_inverse_layer_idx", false),
                 "scale_attn_by_inverse_layer_idx", true,
                 "scores divided by the number of the layer are not supported");
  reader.require(!reader.flag("add_cross_attention", false), "add_cross_attention", true,
                 "attention to an encoder is not supported");
  const Json quantized = reader.find({"quantization_config"});
  reader.require(quantized.is_null(), "quantization_config", quantized,
                 "quantized weights are not supported");
  const Json pruned = reader.find({"pruned_heads"});
  reader.require(pruned.is_null() || pruned.empty(), "pruned_heads", pruned,
                 "removed heads are not supported");
}

// The number as people write it: 1e-05, not the double next to the float.
double decimal(float value) {
  char text[64];
  const auto written = std::to_chars(std::begin(text), std::end(text), value);
  double number = 0;
  std::from_chars(text, written.ptr, number);
  return number;
}

const char* torch_name(DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return "float32";
    case DType::bf16:
      return "bfloat16";
    case DType::fp16:
      return "float16";
    case DType::fp64:
      return "float64";
    default:
      throw Error(concat("a model cannot be stored as ", dtype));
  }
}

Json or_null(const std::optional<std::int64_t>& id) { return id ? Json(*id) : Json(nullptr); }

}  // namespace

Gpt2Config read_gpt2_config(std::string_view json, const std::string& source) {
  ConfigReader reader(json, source);
  read_kind(reader);
  reader.finish();  // of another kind of model nothing else makes sense
  Gpt2Config config;
  GptOptions& o = config.options;
  o.num_layers = static_cast<int>(reader.size({"n_layer", "num_hidden_layers"}, 12));
  o.hidden_size = reader.size({"n_embd", "hidden_size"}, 768);
  o.num_heads = reader.size({"n_head", "num_attention_heads"}, 12);
  o.max_positions = reader.size({"n_positions", "max_position_embeddings"}, 1024);
  o.vocabulary = reader.size({"vocab_size"}, 50257);
  o.ffn_hidden_size = reader.size({"n_inner"}, 4 * o.hidden_size);
  o.norm.epsilon = static_cast<float>(reader.number("layer_norm_epsilon", 1e-5, 0, 1));
  o.activation = read_activation(reader);
  o.tied = reader.flag("tie_word_embeddings", true);
  o.init_std = reader.number("initializer_range", 0.02, 0, 1e6);
  o.attention_dropout = static_cast<float>(reader.number("attn_pdrop", 0.1, 0, 1));
  o.hidden_dropout = static_cast<float>(reader.number("resid_pdrop", 0.1, 0, 1));
  reader.require(o.hidden_size % o.num_heads == 0, "n_head", o.num_heads,
                 concat("does not divide n_embd ", o.hidden_size).c_str());
  refuse_variants(reader);
  reader.finish();
  constexpr int kEndOfText = 50256;
  config.tokens = {reader.token("bos_token_id", o.vocabulary, kEndOfText),
                   reader.token("eos_token_id", o.vocabulary, kEndOfText),
                   reader.token("pad_token_id", o.vocabulary, nullptr)};
  return config;
}

std::vector<std::string> gpt2_problems(const GptOptions& o) {
  std::vector<std::string> found;
  const auto require = [&found](bool good, std::string problem) {
    if (!good) {
      found.push_back(std::move(problem));
    }
  };
  require(o.positions == PositionKind::learned, "its positions are not learned");
  require(o.norm.kind == NormKind::layer && !o.norm.one_plus_gain,
          "its norms are not plain layer norms");
  require(!o.gated, "its feed-forward layers are gated");
  require(o.bias, "its linear layers have no biases");
  require(!o.post_norm_residual, "its residuals branch off after the norm");
  require(o.num_key_value_heads == 0 || o.num_key_value_heads == o.num_heads,
          concat(o.num_heads, " heads share ", o.num_key_value_heads, " key/value heads"));
  require(o.head_dim == 0 || o.head_dim * o.num_heads == o.hidden_size,
          concat(o.num_heads, " heads of ", o.head_dim, " channels are not hidden size ",
                 o.hidden_size));
  require(std::ranges::find(kActivations, o.activation, &ActivationName::ours) !=
              std::end(kActivations),
          concat("its activation is ", name(o.activation)));
  return found;
}

std::string write_gpt2_config(const Gpt2Config& config, DType dtype) {
  const GptOptions& o = config.options;
  const auto* activation = std::ranges::find(kActivations, o.activation, &ActivationName::ours);
  check(activation != std::end(kActivations), "GPT-2 has no activation ", name(o.activation));
  const Json json{{"architectures", {"GPT2LMHeadModel"}},
                  {"model_type", "gpt2"},
                  {"vocab_size", o.vocabulary},
                  {"n_positions", o.max_positions},
                  {"n_ctx", o.max_positions},
                  {"n_embd", o.hidden_size},
                  {"n_layer", o.num_layers},
                  {"n_head", o.num_heads},
                  {"n_inner", o.ffn_hidden_size > 0 ? o.ffn_hidden_size : 4 * o.hidden_size},
                  {"activation_function", activation->theirs},
                  {"layer_norm_epsilon", decimal(o.norm.epsilon)},
                  {"initializer_range", o.init_std},
                  {"resid_pdrop", decimal(o.hidden_dropout)},
                  {"embd_pdrop", decimal(o.hidden_dropout)},
                  {"attn_pdrop", decimal(o.attention_dropout)},
                  {"scale_attn_weights", true},
                  {"scale_attn_by_inverse_layer_idx", false},
                  {"reorder_and_upcast_attn", false},
                  {"tie_word_embeddings", o.tied},
                  {"bos_token_id", or_null(config.tokens.bos)},
                  {"eos_token_id", or_null(config.tokens.eos)},
                  {"pad_token_id", or_null(config.tokens.pad)},
                  {"use_cache", true},
                  {"torch_dtype", torch_name(dtype)}};
  return json.dump(2) + "\n";
}

std::string write_generation_config(const HfTokenIds& tokens) {
  Json json = Json::object();
  const std::pair<const char*, const std::optional<std::int64_t>*> ids[] = {
      {"bos_token_id", &tokens.bos}, {"eos_token_id", &tokens.eos}, {"pad_token_id", &tokens.pad}};
  for (const auto& [key, id] : ids) {
    if (*id) {
      json[key] = **id;
    }
  }
  json["do_sample"] = false;
  return json.dump(2) + "\n";
}

}  // namespace bloomery
