#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "models/hf_document.h"

namespace bloomery {
namespace {

using Document = HfDocument;

struct ActivationName {
  std::string_view theirs;
  MlpKind plain, gated;
};
// The first name of each is what we write. The other spellings compute the same function.
constexpr ActivationName kActivations[] = {
    {"gelu_new", MlpKind::gelu_tanh, MlpKind::geglu_tanh},
    {"gelu", MlpKind::gelu_erf, MlpKind::geglu_erf},
    {"relu", MlpKind::relu, MlpKind::reglu},
    {"relu2", MlpKind::squared_relu, MlpKind::automatic},
    {"silu", MlpKind::silu, MlpKind::swiglu},
    {"swish", MlpKind::silu, MlpKind::swiglu},
    {"gelu_python", MlpKind::gelu_erf, MlpKind::geglu_erf},
    {"gelu_pytorch_tanh", MlpKind::gelu_tanh, MlpKind::geglu_tanh},
    {"gelu_python_tanh", MlpKind::gelu_tanh, MlpKind::geglu_tanh},
    {"gelu_fast", MlpKind::gelu_tanh, MlpKind::geglu_tanh},
    {"gelu_accurate", MlpKind::gelu_tanh, MlpKind::geglu_tanh},
};

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

}  // namespace

HfConfig::HfConfig(std::string_view text, std::string source) : json_(std::make_unique<Json>()) {
  json_->source = std::move(source);
  try {
    json_->document = Document::parse(text);
  } catch (const Document::exception& error) {
    throw Error(concat(json_->source, ": not valid JSON: ", error.what()));
  }
  check(json_->document.is_object(), json_->source, ": not a JSON object");
}

HfConfig::HfConfig(std::string_view model_type, std::string_view architecture, DType dtype)
    : json_(std::make_unique<Json>()) {
  json_->reading = false;
  json_->source = model_type;
  json_->document = {{"architectures", {architecture}},
                     {"model_type", model_type},
                     {"use_cache", true},
                     {"torch_dtype", torch_name(dtype)}};
}

HfConfig::~HfConfig() = default;
HfConfig::HfConfig(HfConfig&&) noexcept = default;
HfConfig& HfConfig::operator=(HfConfig&&) noexcept = default;

bool HfConfig::reading() const { return json_->reading; }

std::string HfConfig::model_type() const {
  const Document type = json_->find({"model_type"});
  return type.is_string() ? type.get<std::string>() : "";
}

std::string HfConfig::architecture() const {
  const Document classes = json_->find({"architectures"});
  const bool named = classes.is_array() && !classes.empty() && classes[0].is_string();
  return named ? classes[0].get<std::string>() : "";
}

void HfConfig::size(std::initializer_list<const char*> keys, std::int64_t& field,
                    std::int64_t otherwise) {
  if (!reading()) {
    json_->document[*keys.begin()] = field;
    return;
  }
  const Document value = json_->find(keys);
  field = otherwise;
  if (!value.is_null()) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    const bool good = value.is_number_integer() && value > 0 && value <= kMost;
    json_->require(good, *keys.begin(), value, "must be an integer from 1 to 2147483647");
    field = good ? value.get<std::int64_t>() : otherwise;
  }
}

void HfConfig::labels(std::int64_t& field) {
  constexpr const char* kNames = "id2label";
  if (!reading()) {
    Document &names = json_->document[kNames], &numbers = json_->document["label2id"];
    names = numbers = Document::object();
    for (std::int64_t i = 0; i < field; ++i) {
      names[std::to_string(i)] = concat("LABEL_", i);
      numbers[concat("LABEL_", i)] = i;
    }
    return;
  }
  const Document names = json_->find({kNames});
  if (names.is_null()) {
    return size({"num_labels"}, field, 2);
  }
  json_->require(names.is_object() && !names.empty(), kNames, names, "must name the classes");
  field = std::max<std::int64_t>(1, static_cast<std::int64_t>(names.size()));
}

void HfConfig::sizes(const char* key, std::vector<std::int64_t>& field) {
  if (!reading()) {
    json_->document[key] = field;
    return;
  }
  field.clear();
  const Document value = json_->find({key});
  bool good = value.is_null() || value.is_array();
  for (std::size_t i = 0; good && i < value.size(); ++i) {
    good = value[i].is_number_unsigned() && value[i] <= std::numeric_limits<std::int32_t>::max();
    field.push_back(good ? value[i].get<std::int64_t>() : 0);
  }
  json_->require(good, key, value, "must be a list of whole numbers");
}

void HfConfig::number(const char* key, double& field, double otherwise, double low, double high) {
  if (reading()) {
    field = json_->number(json_->document, key, otherwise, low, high);
  } else {
    json_->document[key] = field;
  }
}

void HfConfig::number(const char* key, float& field, double otherwise, double low, double high) {
  double exact = decimal(field);
  number(key, exact, otherwise, low, high);
  field = static_cast<float>(exact);
}

void HfConfig::flag(const char* key, bool& field, bool otherwise) {
  if (reading()) {
    field = json_->flag(key, otherwise);
  } else {
    json_->document[key] = field;
  }
}

void HfConfig::opposite(const char* key, bool& field, bool otherwise) {
  bool said = !field;
  flag(key, said, otherwise);
  field = !said;
}

void HfConfig::activation(const char* key, MlpKind& field, const char* otherwise, bool gated) {
  const auto kind = gated ? &ActivationName::gated : &ActivationName::plain;
  if (!reading()) {
    const auto* found = std::ranges::find(kActivations, field, kind);
    json_->document[key] = found != std::end(kActivations) ? found->theirs : otherwise;
    return;
  }
  const Document value = json_->find({key});
  const std::string name = value.is_string() ? value.get<std::string>() : otherwise;
  const auto* found = std::ranges::find(kActivations, name, &ActivationName::theirs);
  const bool good = found != std::end(kActivations) && found->*kind != MlpKind::automatic &&
                    (value.is_null() || value.is_string());
  json_->require(good, key, value, "this function is not supported");
  field = good ? found->*kind : MlpKind::gelu_tanh;
}

void HfConfig::activation(const char* key, MlpKind& field, std::initializer_list<Word> words) {
  const Document value = reading() ? json_->find({key}) : Document();
  for (const Word& word : words) {
    if (reading() ? value == word.theirs : field == word.ours) {
      field = word.ours;
      json_->document[key] = word.theirs;
      return;
    }
  }
  if (reading() && value.is_null()) {
    field = words.begin()->ours;
  } else if (reading()) {
    json_->require(false, key, value, "this function is not supported");
  } else {
    json_->problems.push_back("its activation has no name there");
  }
}

void HfConfig::decoder_start(std::int64_t vocabulary, std::int64_t otherwise) {
  constexpr const char* kKey = "decoder_start_token_id";
  if (reading()) {
    token_ids.decoder_start = json_->token(kKey, vocabulary, otherwise);
  } else {
    token_ids.decoder_start = token_ids.decoder_start.value_or(otherwise);
    json_->document[kKey] = *token_ids.decoder_start;
  }
}

void HfConfig::tokens(std::int64_t vocabulary, const HfTokenIds& otherwise) {
  HfTokenIds& ids = token_ids;
  if (reading()) {
    ids = {json_->token("bos_token_id", vocabulary, otherwise.bos),
           json_->token("eos_token_id", vocabulary, otherwise.eos),
           json_->token("pad_token_id", vocabulary, otherwise.pad)};
    return;
  }
  json_->document["bos_token_id"] = or_null(ids.bos);
  json_->document["eos_token_id"] = or_null(ids.eos);
  json_->document["pad_token_id"] = or_null(ids.pad);
}

void HfConfig::only(const char* key, bool value, const char* why) {
  if (reading()) {
    json_->require(json_->flag(key, value) == value, key, !value, why);
  } else {
    json_->document[key] = value;
  }
}

void HfConfig::only_word(const char* key, std::string_view word, const char* why) {
  if (reading()) {
    const Document value = json_->find({key});
    json_->require(value.is_null() || value == word, key, value, why);
  }
}

void HfConfig::none(const char* key, const char* why) {
  if (reading()) {
    const Document value = json_->find({key});
    json_->require(value.is_null() || (value.is_structured() && value.empty()), key, value, why);
  }
}

void HfConfig::require(bool good, const std::string& problem) {
  if (!good) {
    json_->problems.push_back(problem);
  }
}

void HfConfig::note(const std::string& text) { json_->notes.push_back(text); }

const std::vector<std::string>& HfConfig::notes() const { return json_->notes; }

const std::vector<std::string>& HfConfig::problems() const { return json_->problems; }

void HfConfig::finish() const {
  std::string all;
  for (const std::string& problem : json_->problems) {
    all += "\n  " + problem;
  }
  check(all.empty(), json_->source, ": this model cannot be ",
        reading() ? "read:" : "written:", all);
}

std::string HfConfig::text() const { return json_->document.dump(2) + "\n"; }

std::string generation_config(const HfTokenIds& tokens) {
  Document json = Document::object();
  const std::pair<const char*, const std::optional<std::int64_t>*> ids[] = {
      {"bos_token_id", &tokens.bos},
      {"eos_token_id", &tokens.eos},
      {"pad_token_id", &tokens.pad},
      {"decoder_start_token_id", &tokens.decoder_start}};
  for (const auto& [key, id] : ids) {
    if (*id) {
      json[key] = **id;
    }
  }
  json["do_sample"] = false;
  return json.dump(2) + "\n";
}

}  // namespace bloomery
