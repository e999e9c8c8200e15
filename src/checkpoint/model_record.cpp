#include "checkpoint/model_record.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kModel = "model";
constexpr const char* kTokenizer = "tokenizer";
constexpr const char* kDType = "dtype";
constexpr const char* kTokenIds = "token_ids";  // absent: none is known
constexpr std::string_view kExpAvg = "/exp_avg", kExpAvgSq = "/exp_avg_sq";

const char* name(NormKind kind) { return kind == NormKind::layer ? "layer" : "rms"; }

const char* name(PositionKind kind) {
  constexpr const char* kNames[] = {"learned", "rotary", "none"};
  return kNames[static_cast<int>(kind)];
}

const char* name(RecomputeOptions::Method method) {
  constexpr const char* kNames[] = {"none", "uniform", "block"};
  return kNames[static_cast<int>(method)];
}

// The last value of each enumeration: their names are tried from 0 to it.
constexpr NormKind last_of(NormKind) { return NormKind::rms; }
constexpr PositionKind last_of(PositionKind) { return PositionKind::none; }
constexpr Activation last_of(Activation) { return Activation::squared_relu; }
constexpr RecomputeOptions::Method last_of(RecomputeOptions::Method) {
  return RecomputeOptions::Method::block;
}

// The only lists of the fields: writer and reader both go through them.
template <class Options, class Visitor>
void visit_model(Options& o, Visitor&& field) {
  field("num_layers", o.num_layers);
  field("hidden_size", o.hidden_size);
  field("num_heads", o.num_heads);
  field("num_key_value_heads", o.num_key_value_heads);
  field("head_dim", o.head_dim);
  field("ffn_hidden_size", o.ffn_hidden_size);
  field("vocabulary", o.vocabulary);
  field("make_vocabulary_divisible_by", o.make_vocabulary_divisible_by);
  field("max_positions", o.max_positions);
  field("norm", o.norm.kind);
  field("norm_epsilon", o.norm.epsilon);
  field("norm_one_plus_gain", o.norm.one_plus_gain);
  field("activation", o.activation);
  field("gated", o.gated);
  field("bias", o.bias);
  field("tied", o.tied);
  field("positions", o.positions);
  field("rotary_fraction", o.rotary_fraction);
  field("rotary_base", o.rotary_base);
  field("rotary_interleaved", o.rotary_interleaved);
  field("post_norm_residual", o.post_norm_residual);
  field("fp32_residual", o.fp32_residual);
  field("padded_vocabulary_in_softmax", o.padded_vocabulary_in_softmax);
  field("attention_dropout", o.attention_dropout);
  field("hidden_dropout", o.hidden_dropout);
  field("init_std", o.init_std);
  field("xavier_init", o.xavier_init);
  field("recompute_method", o.recompute.method);
  field("recompute_num_layers", o.recompute.num_layers);
}

template <class Options, class Visitor>
void visit_tokenizer(Options& o, Visitor&& field) {
  field("path", o.path);
  field("type", o.type);
  field("vocab_file", o.vocab_file);
  field("merge_file", o.merge_file);
  field("tokenizer_model", o.tokenizer_model);
  field("vocab_size", o.vocab_size);
  field("vocab_extra_ids", o.vocab_extra_ids);
  field("pattern", o.pattern);
}

template <class Ids, class Visitor>
void visit_token_ids(Ids& ids, Visitor&& field) {
  field("bos", ids.bos);
  field("eos", ids.eos);
  field("pad", ids.pad);
}

class FieldWriter {
 public:
  template <class Field>
  void operator()(const char* key, const Field& field) {
    if constexpr (std::is_enum_v<Field>) {
      object_[key] = name(field);
    } else if constexpr (std::is_floating_point_v<Field>) {
      check(std::isfinite(field), "the model's ", key, " is ", field, ", which JSON cannot hold");
      object_[key] = static_cast<double>(field);
    } else if constexpr (std::is_same_v<Field, std::optional<std::int64_t>>) {
      object_[key] = field ? Json(*field) : Json(nullptr);
    } else {
      object_[key] = field;
    }
  }
  std::string text() const { return object_.dump(); }
  const Json& object() const { return object_; }

 private:
  Json object_ = Json::object();
};

class FieldReader {
 public:
  FieldReader(std::string_view text, const std::string& place) : place_(place) {
    constexpr int kDeepest = 4;
    const auto shallow = [this](int depth, Json::parse_event_t, const Json&) {
      check(depth <= kDeepest, place_, ": nested too deeply");
      return true;
    };
    try {
      object_ = Json::parse(text, shallow);
    } catch (const Json::exception& error) {
      throw Error(concat(place_, ": not valid JSON: ", error.what()));
    }
    check(object_.is_object(), place_, ": not a JSON object");
  }

  template <class Field>
  void operator()(const char* key, Field& field) {
    const auto found = object_.find(key);
    check(found != object_.end(), place_, ": lacks ", key);
    known_.insert(key);
    read(key, *found, field);
  }

  void require_no_other() const {
    for (const auto& [key, value] : object_.items()) {
      check(known_.contains(key), place_, ": has ", key,
            ", which is unknown here; a newer program wrote it");
    }
  }

 private:
  void require(bool good, const char* key, const Json& value, const char* wanted) const {
    const std::string shown = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    check(good, place_, ": ", key, " is ", shown.substr(0, 100), ", not ", wanted);
  }

  template <class Field>
  void read(const char* key, const Json& value, Field& field) const {
    if constexpr (std::is_same_v<Field, bool>) {
      require(value.is_boolean(), key, value, "true or false");
      field = value.get<bool>();
    } else if constexpr (std::is_integral_v<Field>) {
      constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<Field>::max());
      require(value.is_number_unsigned() && value.get<std::uint64_t>() <= kLargest, key, value,
              "a whole number in range");
      field = static_cast<Field>(value.get<std::uint64_t>());
    } else if constexpr (std::is_floating_point_v<Field>) {
      require(value.is_number(), key, value, "a number");
      field = static_cast<Field>(value.get<double>());
      require(std::isfinite(field), key, value, "a number in range");
    } else if constexpr (std::is_enum_v<Field>) {
      require(value.is_string(), key, value, "a name");
      field = of_name<Field>(key, value);
    } else if constexpr (std::is_same_v<Field, std::optional<std::int64_t>>) {
      if (!value.is_null()) {
        read(key, value, field.emplace());
      }
    } else {
      require(value.is_string(), key, value, "a text");
      field = value.get<std::string>();
    }
  }

  template <class Enum>
  Enum of_name(const char* key, const Json& value) const {
    for (int i = 0; i <= static_cast<int>(last_of(Enum())); ++i) {
      if (value.get_ref<const std::string&>() == name(static_cast<Enum>(i))) {
        return static_cast<Enum>(i);
      }
    }
    require(false, key, value, "a known name");
    return Enum();
  }

  const std::string& place_;
  Json object_;
  std::set<std::string, std::less<>> known_;
};

TokenizerOptions with_absolute_paths(TokenizerOptions options) {
  namespace fs = std::filesystem;
  for (std::string* path :
       {&options.path, &options.vocab_file, &options.merge_file, &options.tokenizer_model}) {
    std::error_code none;
    if (!path->empty() && fs::exists(*path, none)) {
      *path = fs::absolute(*path).lexically_normal().string();
    }
  }
  return options;
}

const std::string& member(const RunState& state, const char* key, const std::string& place) {
  const auto found = state.extra.find(key);
  check(found != state.extra.end(), place, ": its record lacks ", key,
        "; it is no checkpoint of a GPT");
  return found->second;
}

}  // namespace

std::string to_json(const GptOptions& options) {
  FieldWriter writer;
  visit_model(options, writer);
  return writer.text();
}

std::string to_json(const TokenizerOptions& options) {
  FieldWriter writer;
  visit_tokenizer(options, writer);
  return writer.text();
}

GptOptions gpt_options_from_json(std::string_view json, const std::string& place) {
  FieldReader reader(json, place);
  GptOptions options;
  visit_model(options, reader);
  reader.require_no_other();
  std::string all;
  for (const std::string& problem : problems(options, {})) {
    all += "\n  " + problem;
  }
  check(options.make_vocabulary_divisible_by >= 1, place, ": make_vocabulary_divisible_by is 0");
  check(all.empty(), place, ": this GPT cannot be built:", all);
  return options;
}

TokenizerOptions tokenizer_options_from_json(std::string_view json, const std::string& place) {
  FieldReader reader(json, place);
  TokenizerOptions options;
  visit_tokenizer(options, reader);
  reader.require_no_other();
  return options;
}

std::vector<std::string> model_differences(const GptOptions& here, const GptOptions& stored) {
  FieldWriter a, b;
  visit_model(here, a);
  visit_model(stored, b);
  std::vector<std::string> keys = {"norm",  "norm_epsilon", "norm_one_plus_gain", "activation",
                                   "gated", "positions",    "post_norm_residual"};
  if (here.positions == PositionKind::rotary && stored.positions == PositionKind::rotary) {
    keys.insert(keys.end(), {"rotary_fraction", "rotary_base", "rotary_interleaved"});
  }
  const auto text = [](const Json& value) {
    return value.is_number_float() ? concat(value.get<double>()) : value.dump();
  };
  std::vector<std::string> found;
  for (const std::string& key : keys) {
    const Json &x = a.object()[key], &y = b.object()[key];
    if (x != y) {
      found.push_back(concat(key, ": ", text(x), " here, ", text(y), " in the checkpoint"));
    }
  }
  return found;
}

DType training_dtype_of_name(std::string_view text, const std::string& place) {
  for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
    if (text == bloomery::name(dtype)) {
      return dtype;
    }
  }
  throw Error(concat(place, ": dtype is '", text, "', not fp32, bf16 or fp16"));
}

void set_model_record(RunState& state, const ModelRecord& record) {
  const std::string dtype = bloomery::name(record.dtype);
  training_dtype_of_name(dtype, "a model to be saved");
  state.extra[kModel] = to_json(record.model);
  state.extra[kTokenizer] =
      record.tokenizer ? to_json(with_absolute_paths(*record.tokenizer)) : "{}";
  state.extra[kDType] = dtype;
}

void set_token_ids(RunState& state, const HfTokenIds& ids) {
  FieldWriter writer;
  visit_token_ids(ids, writer);
  state.extra[kTokenIds] = writer.text();
}

HfTokenIds token_ids(const RunState& state, const std::string& place) {
  HfTokenIds ids;
  if (const auto found = state.extra.find(kTokenIds); found != state.extra.end()) {
    const std::string where = concat(place, ": ", kTokenIds);
    FieldReader reader(found->second, where);
    visit_token_ids(ids, reader);
    reader.require_no_other();
  }
  return ids;
}

ModelRecord model_record(const RunState& state, const std::string& place) {
  ModelRecord record;
  record.model = gpt_options_from_json(member(state, kModel, place), concat(place, ": ", kModel));
  const std::string& tokenizer = member(state, kTokenizer, place);
  if (tokenizer != "{}") {
    record.tokenizer = tokenizer_options_from_json(tokenizer, concat(place, ": ", kTokenizer));
  }
  record.dtype = training_dtype_of_name(member(state, kDType, place), place);
  return record;
}

std::string exp_avg_name(std::string_view parameter) { return concat(parameter, kExpAvg); }
std::string exp_avg_sq_name(std::string_view parameter) { return concat(parameter, kExpAvgSq); }
bool is_moment_name(std::string_view tensor) {
  return tensor.ends_with(kExpAvg) || tensor.ends_with(kExpAvgSq);
}

}  // namespace bloomery
