#include "checkpoint/megatron/arguments.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/option_table.h"
#include "models/family.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;
using Kind = PickleNode::Kind;

// Arguments whose flag has another name than they.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"rope_theta", "rotary-position-embeddings-theta"},
    {"add_position_embedding", "position-embedding"},
};
constexpr std::pair<std::string_view, const char*> kActivations[] = {
    {"swiglu", "swiglu"}, {"openai_gelu", "gelu-tanh"}, {"squared_relu", "squared-relu"}};

std::string flag_name(std::string_view argument) {
  const auto* other = std::ranges::find(kOtherNames, argument,
                                        &std::pair<std::string_view, std::string_view>::first);
  if (other != std::end(kOtherNames)) {
    return std::string(other->second);
  }
  std::string name(argument);
  std::ranges::replace(name, '_', '-');
  return name;
}

// Plain values and lists of them; none: without a meaning here.
std::optional<Json> to_json(const TorchValue& value) {
  switch (value.kind()) {
    case Kind::boolean:
      return value.flag();
    case Kind::integer:
      return value.integer();
    case Kind::real:
      return value.real();
    case Kind::text:
      return value.text();
    case Kind::list: {
      Json list = Json::array();
      for (const TorchValue& element : value.elements()) {
        if (element.kind() != Kind::integer) {
          return std::nullopt;
        }
        list.push_back(element.integer());
      }
      return list;
    }
    default:
      return std::nullopt;
  }
}

Json schedule_json(const TorchValue& s) {
  const std::string style = s.at("lr_decay_style").text();
  const std::string weight_style = s.at("wd_incr_style").text();
  constexpr std::string_view kStyles[] = {"constant", "linear", "cosine", "inverse-square-root"};
  const auto place = [&](const std::string& word) {
    const auto* found = std::ranges::find(kStyles, word);
    check(found != std::end(kStyles), s.object().source(), ": ", s.path(),
          " has the unknown style ", word);
    return found - kStyles;
  };
  const bool grows = place(weight_style) > 0;
  return {{"learning_rate", s.at("max_lr").real()},
          {"min_learning_rate", s.at("min_lr").real()},
          {"decay_style", place(style)},
          {"train_length", std::max<std::int64_t>(1, s.at("wd_incr_steps").integer())},
          {"decay_length", s.at("lr_decay_steps").integer()},
          {"warmup_length", s.at("lr_warmup_steps").integer()},
          {"warmup_fraction", nullptr},
          {"weight_decay", s.at("end_wd").real()},
          {"start_weight_decay", grows ? Json(s.at("start_wd").real()) : Json()},
          {"end_weight_decay", grows ? Json(s.at("end_wd").real()) : Json()},
          {"weight_decay_style", place(weight_style)},
          {"samples_per_unit", 1}};
}

}  // namespace

MegatronArguments::MegatronArguments(const TorchValue& file) : file_(file), arguments_(file) {
  const std::optional<TorchValue> arguments = file.find("args");
  check(arguments && (arguments->is_dict() || arguments->attributes()), file.object().source(),
        ": has no args, which say what model it is; convert it with the program that wrote it");
  arguments_ = *arguments;
  if (const auto version = file.find("checkpoint_version")) {
    version_ = version->real();
  }
  padded_vocabulary_ = count("padded_vocab_size", 0);
  vocabulary_ = padded_vocabulary_;
  const auto info = file.find("universal_checkpoint_info");
  if (const auto size = info ? info->find("original_vocab_size") : std::nullopt) {
    vocabulary_ = size->integer();
  } else if (const auto named = tokenizer()) {  // older files do not say it
    vocabulary_ = std::min<std::int64_t>(load_tokenizer(*named)->vocab_size(), padded_vocabulary_);
  }
  check(vocabulary_ > 0 && vocabulary_ <= padded_vocabulary_, file.object().source(),
        ": a vocabulary of ", vocabulary_, " tokens in ", padded_vocabulary_, " rows");
}

std::optional<TorchValue> MegatronArguments::find(std::string_view name) const {
  const auto found = arguments_.find(name);
  return found && !found->is_none() ? found : std::nullopt;
}

std::int64_t MegatronArguments::count(std::string_view name, std::int64_t otherwise) const {
  const auto found = find(name);
  const std::int64_t value = found ? found->integer() : otherwise;
  check(value >= 0 && value <= (std::int64_t{1} << 40), file_.object().source(), ": args.", name,
        " is ", value);
  return value;
}

bool MegatronArguments::flag(std::string_view name) const {
  const auto found = find(name);
  return found && found->kind() == Kind::boolean && found->flag();
}

// The arguments are the flags of ours that the same words give: a record of the model.
std::string MegatronArguments::model_json(std::string_view family) const {
  ModelOptions options;
  options.family = family;
  OptionTable table;
  describe_model(table, options);
  const std::vector<std::string> known = table.names();
  Json record = {{"version", 2}, {"family", family}, {"vocabulary-size", vocabulary_}};
  const TorchValue members = arguments_.is_dict() ? arguments_ : *arguments_.attributes();
  for (const auto& [key, value] : members.items()) {
    const std::string name = flag_name(key);
    const bool is_option = std::ranges::find(known, name) != known.end();
    if (const auto json = is_option ? to_json(value) : std::nullopt) {
      record[name] = *json;
    }
  }
  for (const auto& [argument, activation] : kActivations) {
    if (flag(argument)) {
      record["activation"] = activation;
    }
  }
  return record.dump();
}

ModelRecord MegatronArguments::model(std::string_view family) const {
  ModelRecord record;
  record.model =
      from_record(model_json(family), concat(file_.object().source(), ": args"), record.notes);
  record.dtype = flag("fp16") ? DType::fp16 : flag("bf16") ? DType::bf16 : DType::fp32;
  record.tokenizer = tokenizer();
  return record;
}

std::optional<TokenizerOptions> MegatronArguments::tokenizer() const {
  TokenizerOptions o;
  bool found = true;
  const auto text = [&](const char* name, std::string& field) {
    const auto value = find(name);
    if (value && value->kind() == Kind::text) {
      field = value->text();
      std::error_code none;
      found = found && (&field == &o.type || std::filesystem::exists(field, none));
    }
  };
  text("tokenizer_type", o.type);
  text("vocab_file", o.vocab_file);
  text("merge_file", o.merge_file);
  text("tokenizer_model", o.tokenizer_model);
  o.vocab_size = o.type == "NullTokenizer" ? count("vocab_size", 0) : 0;
  o.vocab_extra_ids = count("vocab_extra_ids", 0);
  return found && !o.type.empty() ? std::optional(o) : std::nullopt;
}

RunState MegatronArguments::run_state(const std::optional<TorchValue>& schedule) const {
  RunState state;
  if (const auto iteration = file_.find("iteration")) {
    state.step = iteration->integer();
  }
  check(state.step >= 0, file_.object().source(), ": iteration ", state.step);
  state.consumed_samples = count("consumed_train_samples", 0);
  if (const std::int64_t tokens = count("consumed_train_tokens", 0); tokens > 0) {
    state.extra["consumed_tokens"] = std::to_string(tokens);
  }
  std::int64_t position = state.consumed_samples;
  if (schedule && schedule->is_dict() && schedule->find("max_lr")) {
    state.extra["schedule"] = schedule_json(*schedule).dump();
    position = schedule->at("num_steps").integer();
  }
  state.extra["schedule_position"] = std::to_string(position);
  set_optimizer_progress(state, state.step, 0);
  state.options = run_json();
  return state;
}

std::string argument_name(std::string_view option) {
  std::string name(option);
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string MegatronArguments::run_json() const {
  Json options = Json::object();
  for (const char* name : kRunOptions) {
    const auto value = find(argument_name(name));
    if (value && (value->kind() == Kind::integer || value->kind() == Kind::real)) {
      options[name] = *to_json(*value);
    }
  }
  return options.dump();
}

void set_optimizer_progress(RunState& state, std::int64_t steps, std::int64_t skipped) {
  state.extra["optimizer_steps"] = std::to_string(steps);
  state.extra["skipped_steps"] = std::to_string(skipped);
}

}  // namespace bloomery
