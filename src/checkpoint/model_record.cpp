#include "checkpoint/model_record.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>

#include "config/json_fields.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kModel = "model";
constexpr const char* kTokenizer = "tokenizer";
constexpr const char* kDType = "dtype";
constexpr const char* kTokenIds = "token_ids";  // absent: none is known

// The only lists of the fields: writer and reader both go through them.
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
  field("decoder_start", ids.decoder_start);
}

class FieldWriter {
 public:
  template <class Field>
  void operator()(const char* key, const Field& field) {
    if constexpr (std::is_same_v<Field, std::optional<std::int64_t>>) {
      object_[key] = field ? Json(*field) : Json(nullptr);
    } else {
      object_[key] = field;
    }
  }
  std::string text() const { return object_.dump(); }

 private:
  Json object_ = Json::object();
};

// No other fields than those that are known.
class FieldReader {
 public:
  FieldReader(std::string_view text, const std::string& place) : fields_(text, place) {}

  // A member that an older program did not know keeps its default.
  template <class Field>
  void operator()(const char* key, Field& field) {
    known_.insert(key);
    if (fields_.kind(key) == JsonFields::Kind::absent) return;
    if constexpr (std::is_same_v<Field, std::string>) {
      fields_.read(key, field);
    } else if (fields_.kind(key) != JsonFields::Kind::null || std::is_integral_v<Field>) {
      field = fields_.count(key);
    }
  }
  void finish() const { fields_.refuse_others(known_); }

 private:
  JsonFields fields_;
  std::set<std::string_view> known_;
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
        "; it is no checkpoint of a model");
  return found->second;
}

}  // namespace

std::string to_json(const TokenizerOptions& options) {
  FieldWriter writer;
  visit_tokenizer(options, writer);
  return writer.text();
}

TokenizerOptions tokenizer_options_from_json(std::string_view json, const std::string& place) {
  FieldReader reader(json, place);
  TokenizerOptions options;
  visit_tokenizer(options, reader);
  reader.finish();
  return options;
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
  state.extra[kModel] = to_record(record.model);
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
    reader.finish();
  }
  return ids;
}

ModelRecord model_record(const RunState& state, const std::string& place) {
  ModelRecord record;
  record.model =
      from_record(member(state, kModel, place), concat(place, ": ", kModel), record.notes);
  const std::string& tokenizer = member(state, kTokenizer, place);
  if (tokenizer != "{}") {
    record.tokenizer = tokenizer_options_from_json(tokenizer, concat(place, ": ", kTokenizer));
  }
  record.dtype = training_dtype_of_name(member(state, kDType, place), place);
  return record;
}

std::string state_name(std::string_view parameter, const StateTensor& tensor) {
  return concat(parameter, '/', tensor.name);
}

}  // namespace bloomery
