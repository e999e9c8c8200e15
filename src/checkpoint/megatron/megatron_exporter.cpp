#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/boxes.h"
#include "checkpoint/megatron/arguments.h"
#include "checkpoint/megatron/foreign_write.h"
#include "models/family.h"
#include "optim/optimizer_choice.h"
#include "optim/schedule.h"

namespace bloomery {
namespace {

using Dict = PyValue::Dict;

std::int64_t padded(const ModelOptions& options, const ForeignLayout& layout) {
  const std::int64_t multiple = layout.padded ? options.vocabulary.divisible_by * layout.tensor : 1;
  return (options.vocabulary.size + multiple - 1) / multiple * multiple;
}

void convert(const std::byte* from, DType from_type, std::byte* to, DType to_type,
             std::int64_t count) {
  dispatch_floating(from_type, [&](auto source) {
    dispatch_floating(to_type, [&](auto target) {
      using From = typename decltype(source)::type;
      using To = typename decltype(target)::type;
      for (std::int64_t i = 0; i < count; ++i) {
        From value;
        std::memcpy(&value, from + static_cast<std::size_t>(i) * sizeof(From), sizeof value);
        const To result(static_cast<Accumulator<To>>(static_cast<Accumulator<From>>(value)));
        std::memcpy(to + static_cast<std::size_t>(i) * sizeof(To), &result, sizeof result);
      }
    });
  });
}

// The mean of all rows: what stands for tokens that do not exist must not win against real ones,
// since Megatron's softmax counts them.
std::vector<float> mean_row(const Tensor& table) {
  const std::int64_t rows = table.shape()[0],
                     width = table.numel() / std::max<std::int64_t>(1, rows);
  std::vector<double> sums(static_cast<std::size_t>(width));
  std::vector<float> row(static_cast<std::size_t>(width));
  const std::size_t row_bytes = static_cast<std::size_t>(width) * size_of(table.dtype());
  for (std::int64_t i = 0; i < rows; ++i) {
    convert(static_cast<const std::byte*>(table.data()) + static_cast<std::size_t>(i) * row_bytes,
            table.dtype(), reinterpret_cast<std::byte*>(row.data()), DType::fp32, width);
    for (std::size_t k = 0; k < row.size(); ++k) {
      sums[k] += static_cast<double>(row[k]);
    }
  }
  for (std::size_t k = 0; k < row.size(); ++k) {
    row[k] = static_cast<float>(sums[k] / static_cast<double>(rows));
  }
  return row;
}

PyValue dtype_value(DType dtype) {
  return PyValue::Global{"torch", dtype == DType::fp16   ? "float16"
                                  : dtype == DType::bf16 ? "bfloat16"
                                                         : "float32"};
}

// A number among the options of a run; null: not known.
nlohmann::json run_option(const RunState* run, const char* name) {
  const auto options =
      run != nullptr ? nlohmann::json::parse(run->options, nullptr, false) : nlohmann::json();
  return options.is_object() && options.contains(name) ? options.at(name) : nlohmann::json();
}

// What the source has, for each of its weights, of all that an optimizer declares. Of optimizers
// with tensors of the same names the one that the run says, else the first.
std::span<const StateTensor> saved_state(const ModelSource& source) {
  std::span<const StateTensor> found;
  const nlohmann::json word = run_option(source.state(), "optimizer");
  for (const auto& [name, rule] : optimizer_words()) {
    const std::span<const StateTensor> declared = state_of(rule);
    const bool all = std::ranges::all_of(source.weights(), [&](const auto& weight) {
      return std::ranges::all_of(declared, [&](const StateTensor& tensor) {
        return source.others().contains(state_name(weight.first, tensor));
      });
    });
    if (all && (declared.size() > found.size() || (word.is_string() && word == name))) {
      found = declared;
    }
  }
  return found;
}

PyValue text_or_none(const std::string& text) { return text.empty() ? PyValue() : PyValue(text); }

}  // namespace

MegatronExporter::MegatronExporter(const ModelSource& source, const ForeignLayout& layout,
                                   bool release)
    : source_(source),
      layout_((require_megatron_form(source.record().model, layout), layout)),
      padded_vocabulary_(padded(source.record().model, layout)),
      names_(source.record().model, layout.tensor, padded_vocabulary_, QkvOrder::by_head),
      release_(release) {
  if (!release) {
    states_ = saved_state(source);
  }
}

bool MegatronExporter::decays(const std::string& name) {
  return name.ends_with(".weight") && name.find("layernorm") == name.npos;
}

std::int64_t MegatronExporter::size(const std::string& name) const {
  return names_.local_shape(*names_.find(name), name).numel();
}

PyValue::Tensor MegatronExporter::tensor(const std::string& name, int rank,
                                         const Kind& kind) const {
  const MegatronNames::Entry& entry = *names_.find(name);
  const DType stored = source_.weights().at(entry.ours).dtype;
  const DType dtype = !kind.is_computed ? DType::fp32 : has_states() ? record().dtype : stored;
  return {
      dtype, names_.local_shape(entry, name), {[this, &entry, rank, suffix = kind.suffix, dtype] {
        return bytes(entry, rank, suffix, dtype);
      }}};
}

const Tensor& MegatronExporter::whole(const std::string& name) const {
  if (last_name_ != name) {
    last_ = {};  // before there is another one
    last_ = source_.read(name);
    last_name_ = name;
  }
  return last_;
}

std::vector<std::byte> MegatronExporter::bytes(const MegatronNames::Entry& entry, int rank,
                                               const std::string& suffix, DType dtype) const {
  const std::vector<TensorPart> parts = names_.segments(entry, rank);
  std::vector<std::byte> all;
  for (const TensorPart& part : parts) {
    const std::int64_t count = part.box.extent.numel();
    const std::size_t at = all.size();
    all.resize(at + static_cast<std::size_t>(count) * size_of(dtype));
    const bool padding = part.tensor != entry.ours;
    const std::string name = part.tensor + suffix;
    if (padding &&
        !(source_.others().contains(name) && source_.others().at(name).shape == part.box.global)) {
      if (suffix.empty()) {
        const std::vector<float> row = mean_row(whole(entry.ours));
        const auto width = static_cast<std::int64_t>(row.size());
        for (std::int64_t i = 0; i < part.box.extent[0]; ++i) {
          convert(reinterpret_cast<const std::byte*>(row.data()), DType::fp32,
                  all.data() + at + static_cast<std::size_t>(i * width) * size_of(dtype), dtype,
                  width);
        }
      }
      continue;
    }
    const Tensor& stored = whole(name);
    const auto* from = static_cast<const std::byte*>(stored.data());
    for_each_run(
        part.box, Box::whole(stored.shape()), part.box,
        [&](std::int64_t begin, std::int64_t to, std::int64_t length) {
          convert(from + static_cast<std::size_t>(begin) * size_of(stored.dtype()), stored.dtype(),
                  all.data() + at + static_cast<std::size_t>(to) * size_of(dtype), dtype, length);
        });
  }
  return all;
}

std::int64_t MegatronExporter::iteration() const { return run() != nullptr ? run()->step : 0; }

std::int64_t MegatronExporter::number(const char* name, std::int64_t otherwise) const {
  if (run() == nullptr || !run()->extra.contains(name)) {
    return otherwise;
  }
  return std::stoll(run()->extra.at(name));
}

double MegatronExporter::option(const char* name, double otherwise) const {
  const auto found = run_option(run(), name);
  return found.is_number() ? found.get<double>() : otherwise;
}

PyValue MegatronExporter::arguments() const {
  const ModelOptions& o = record().model;
  const TokenizerOptions tokenizer = record().tokenizer.value_or(TokenizerOptions{});
  const std::int64_t consumed = run() != nullptr ? run()->consumed_samples : 0;
  const bool tanh = o.mlp.kind == MlpKind::gelu_tanh;
  const bool bias = o.attention.qkv_bias.value_or(o.bias);
  Dict a = {{"num_layers", o.num_layers},
            {"encoder_num_layers", o.num_layers},
            {"hidden_size", o.hidden_size},
            {"ffn_hidden_size", o.mlp.ffn},
            {"num_attention_heads", o.attention.num_heads},
            {"num_key_value_heads", o.attention.num_groups},
            {"kv_channels", o.attention.head_dim},
            {"seq_length", static_cast<std::int64_t>(
                               option("seq-length", static_cast<double>(o.positions.max_length)))},
            {"max_position_embeddings", o.positions.max_length},
            {"add_position_embedding", o.positions.has_table()},
            {"use_rotary_position_embeddings", o.positions.rotary},
            {"rotary_percent", o.positions.rotary_fraction},
            {"rope_theta", o.positions.rotary_base},
            {"normalization", o.norm.kind == NormKind::rms ? "rmsnorm" : "layernorm"},
            {"layernorm_epsilon", static_cast<double>(o.norm.epsilon)},
            {"apply_layernorm_1p", o.norm.one_plus_gain},
            {"swiglu", o.mlp.kind == MlpKind::swiglu},
            {"squared_relu", o.mlp.kind == MlpKind::squared_relu},
            {"openai_gelu", tanh && (!bias || o.head_activation == MlpKind::gelu_tanh)},
            {"onnx_safe", PyValue()},
            {"bias_gelu_fusion", tanh},
            {"add_bias_linear", bias},
            {"untie_embeddings_and_output_weights", o.vocabulary.untied},
            {"apply_residual_connection_post_layernorm", o.residual.after_norm},
            {"fp32_residual_connection", o.residual.fp32},
            {"attention_dropout", static_cast<double>(o.attention.dropout)},
            {"hidden_dropout", static_cast<double>(o.residual.dropout)},
            {"init_method_std", o.init.std},
            {"make_vocab_size_divisible_by", o.vocabulary.divisible_by},
            {"padded_vocab_size", padded_vocabulary_},
            {"tensor_model_parallel_size", layout_.tensor},
            {"pipeline_model_parallel_size", layout_.pipeline},
            {"virtual_pipeline_model_parallel_size", PyValue()},
            {"num_layers_per_virtual_pipeline_stage", PyValue()},
            {"data_parallel_size", layout_.data()},
            {"data_parallel_random_init", false},
            {"params_dtype", dtype_value(record().dtype)},
            {"fp16", record().dtype == DType::fp16},
            {"bf16", record().dtype == DType::bf16},
            {"iteration", iteration()},
            {"consumed_train_samples", consumed},
            {"consumed_train_tokens", consumed_tokens()},
            {"consumed_valid_samples", 0},
            {"tokenizer_type", text_or_none(tokenizer.type)},
            {"vocab_file", text_or_none(tokenizer.vocab_file)},
            {"merge_file", text_or_none(tokenizer.merge_file)},
            {"tokenizer_model", text_or_none(tokenizer.tokenizer_model)},
            {"vocab_extra_ids", tokenizer.vocab_extra_ids},
            {"vocab_size", tokenizer.vocab_size > 0 ? PyValue(tokenizer.vocab_size) : PyValue()}};
  add_run_arguments(a);
  add_family_arguments(a);
  return PyValue::Object{{"argparse", "Namespace"}, std::move(a)};
}

// Those of the run that are not among the model's.
void MegatronExporter::add_run_arguments(Dict& a) const {
  for (const char* name : kRunOptions) {
    const std::string argument = argument_name(name);
    const bool there = std::ranges::any_of(
        a, [&](const auto& item) { return std::get<std::string>(item.first.get()) == argument; });
    if (const auto value = run_option(run(), name); value.is_number() && !there) {
      a.emplace_back(argument, value.is_number_integer() ? PyValue(value.get<std::int64_t>())
                                                         : PyValue(value.get<double>()));
    }
  }
}

void MegatronExporter::add_family_arguments(Dict& a) const {
  if (const auto own = find_family(record().model.family).megatron.arguments) {
    for (const MegatronArgument& argument : own(record().model)) {
      std::visit([&](auto value) { a.emplace_back(std::string(argument.name), value); },
                 argument.value);
    }
  }
  if (num_stacks() == 2) {
    a.emplace_back("pipeline_model_parallel_split_rank",
                   layout_.pipeline > 1 ? PyValue(first_stage(1)) : PyValue());
  }
  const MoeOptions& o = record().model.moe;
  PyValue::List counts;
  for (const std::int64_t count : o.num_experts) {
    counts.emplace_back(count);
  }
  const Dict more = {{"num_experts", counts},
                     {"expert_interval", o.interval},
                     {"mlp_type", o.kind == MoeKind::residual ? "residual" : "standard"},
                     {"topk", o.topk},
                     {"moe_token_dropping", o.drop_tokens},
                     {"moe_train_capacity_factor", o.train_capacity},
                     {"moe_eval_capacity_factor", o.eval_capacity},
                     {"moe_min_capacity", o.min_capacity},
                     {"moe_loss_coeff", o.loss_coefficient},
                     {"moe_top2_2nd_expert_sampling", o.sample_second},
                     {"moe_expert_parallel_size", layout_.expert},
                     {"enable_expert_tensor_parallelism", false},
                     {"create_moe_param_group", has_experts()}};
  a.insert(a.end(), more.begin(), more.end());
}

PyValue MegatronExporter::scheduler() const {
  if (run() == nullptr || !run()->extra.contains("schedule")) {
    return {};
  }
  const auto s = nlohmann::json::parse(run()->extra.at("schedule"));
  const std::int64_t unit = s.at("samples_per_unit");
  const auto samples = [&](const char* key) {
    return s.at(key).is_null() ? s.at("train_length").get<std::int64_t>() * unit
                               : s.at(key).get<std::int64_t>() * unit;
  };
  constexpr const char* kStyles[] = {"constant", "linear", "cosine", "inverse-square-root"};
  const double decay = s.at("weight_decay");
  const std::int64_t length = samples("decay_length");
  const PyValue warmup =
      s.at("warmup_fraction").is_null()
          ? PyValue(samples("warmup_length"))
          : PyValue(s.at("warmup_fraction").get<double>() * static_cast<double>(length));
  return Dict{
      {"max_lr", s.at("learning_rate").get<double>()},
      {"lr_warmup_steps", warmup},
      {"lr_warmup_tokens", PyValue()},
      {"num_steps", number("schedule_position", 0)},
      {"num_tokens", 0},
      {"lr_decay_style", kStyles[s.at("decay_style").get<std::size_t>() % 4]},
      {"lr_decay_steps", length},
      {"lr_decay_tokens", PyValue()},
      {"min_lr", s.at("min_learning_rate").get<double>()},
      {"start_wd",
       s.at("start_weight_decay").is_null() ? decay : s.at("start_weight_decay").get<double>()},
      {"end_wd",
       s.at("end_weight_decay").is_null() ? decay : s.at("end_weight_decay").get<double>()},
      {"wd_incr_style", kStyles[s.at("weight_decay_style").get<std::size_t>() % 4]},
      {"wd_incr_steps", samples("train_length")}};
}

PyValue MegatronExporter::info(bool pipeline_names) const {
  const std::string layers = pipeline_names ? "" : "language_model.encoder.layers.";
  const std::string embed =
      pipeline_names ? (tied() ? "tied_modules.embed." : "\\d+.") : "language_model.embedding.";
  PyValue::List vocabulary{embed + "word_embeddings.weight"}, replicated, gated, repeated;
  if (!tied()) {
    vocabulary.emplace_back(pipeline_names ? "\\d+.lm_head.weight"
                                           : "language_model.output_layer.weight");
  } else if (pipeline_names) {
    repeated = vocabulary;
  }
  // Only what the model has: DeepSpeed refuses patterns that match nothing.
  const auto has = [&](const std::string& ending) {
    return std::ranges::any_of(names_.entries(),
                               [&](const auto& entry) { return entry.first.ends_with(ending); });
  };
  const auto add = [&](PyValue::List& list, const std::string& ending, const std::string& pattern) {
    if (has(ending)) {
      list.emplace_back(pattern);
    }
  };
  for (const char* name :
       {"input_layernorm.weight", "post_attention_layernorm.weight", "input_layernorm.bias",
        "post_attention_layernorm.bias", "self_attention.dense.bias", "mlp.dense_4h_to_h.bias"}) {
    add(replicated, concat(".", name), concat(layers, "\\d+.", name));
  }
  for (const char* name : {"weight", "bias"}) {
    add(replicated, concat("final_layernorm.", name),
        pipeline_names ? concat("\\d+.", name)
                       : concat("language_model.encoder.final_layernorm.", name));
  }
  for (PyValue::List* list : {&replicated, &repeated}) {
    if (list == &replicated || !repeated.empty()) {
      add(*list, "position_embeddings.weight", embed + "position_embeddings.weight");
    }
  }
  if (record().model.mlp.gated()) {
    for (const char* name : {"mlp.dense_h_to_4h.weight", "mlp.dense_h_to_4h.bias"}) {
      add(gated, concat(".", name), concat(layers, "\\d+.", name));
    }
  }
  return Dict{{"universal_checkpoint_version", 0.2},
              {"original_vocab_size", record().model.vocabulary.size},
              {"padded_vocab_size", padded_vocabulary_},
              {"vocabulary_parameter_patterns", vocabulary},
              {"pipeline_replicated_parameter_patterns", repeated},
              {"tp_replicated_parameter_patterns", replicated},
              {"parameter_with_row_parallelism_patterns",
               PyValue::List{layers + "\\d+.mlp.dense_4h_to_h.weight",
                             layers + "\\d+.self_attention.dense.weight"}},
              {"parameter_with_2_sub_params_cat_dim_0", gated}};
}

std::int64_t MegatronExporter::consumed_tokens() const {
  const auto length = static_cast<std::int64_t>(
      option("seq-length", static_cast<double>(record().model.positions.max_length)));
  return number("consumed_tokens", run() != nullptr ? run()->consumed_samples * length : 0);
}

void MegatronExporter::add_client_state(Dict& dict, bool pipeline_names) const {
  dict.emplace_back("args", arguments());
  dict.emplace_back("checkpoint_version", 3.0);
  dict.emplace_back("iteration", iteration());
  dict.emplace_back("tokens", consumed_tokens());
  dict.emplace_back("universal_checkpoint_info", info(pipeline_names));
}

// Learning rate and weight decay of the next step.
std::pair<double, double> MegatronExporter::next_rates() const {
  const PyValue state = scheduler();
  const auto* dict = std::get_if<Dict>(&state.get());
  if (dict == nullptr) {
    return {option("lr", 1e-4), option("weight-decay", 0.01)};
  }
  const auto s = nlohmann::json::parse(run()->extra.at("schedule"));
  const auto optional = [&](const char* key, auto& field) {
    if (!s.at(key).is_null()) {
      field = s.at(key).get<typename std::remove_reference_t<decltype(field)>::value_type>();
    }
  };
  ScheduleOptions o{.learning_rate = s.at("learning_rate"),
                    .min_learning_rate = s.at("min_learning_rate"),
                    .decay_style = static_cast<DecayStyle>(s.at("decay_style").get<int>() % 4),
                    .train_length = s.at("train_length"),
                    .warmup_length = s.at("warmup_length"),
                    .weight_decay = s.at("weight_decay"),
                    .weight_decay_style =
                        static_cast<WeightDecayStyle>(s.at("weight_decay_style").get<int>() % 3),
                    .samples_per_unit = s.at("samples_per_unit")};
  optional("decay_length", o.decay_length);
  optional("warmup_fraction", o.warmup_fraction);
  optional("start_weight_decay", o.start_weight_decay);
  optional("end_weight_decay", o.end_weight_decay);
  const Schedule schedule = make_schedule(o);
  const std::int64_t position = number("schedule_position", 0);
  return {learning_rate(schedule, position), weight_decay(schedule, position)};
}

Dict MegatronExporter::parameter_group(bool decays, bool experts,
                                       const PyValue::List& indices) const {
  const auto [rate, decay] = next_rates();
  const char* const decay_name = decays ? "wd_no_scale_lr" : "no_wd_no_scale_lr";
  const std::string name = experts ? concat("ep_size_", layout_.expert) : decay_name;
  const nlohmann::json optimizer = run_option(source_.state(), "optimizer");
  const bool lion = optimizer == "lion";
  const double beta2 = lion ? option("lion-beta2", 0.99) : option("adam-beta2", 0.999);
  Dict group{{"name", name},
             {"moe", experts},
             {"wd_mult", decays ? 1.0 : 0.0},
             {"lr_mult", 1.0},
             {"lr", rate},
             {"bias_correction", true},
             {"betas", PyValue::Tuple{{option(lion ? "lion-beta1" : "adam-beta1", 0.9), beta2}}},
             {"eps", option("adam-eps", 1e-8)},
             {"weight_decay", decays ? decay : 0.0},
             {"amsgrad", false},
             {"maximize", false},
             {"foreach", PyValue()},
             {"capturable", false},
             {"differentiable", false},
             {"fused", PyValue()},
             {"step", optimizer_steps()},
             {"params", indices}};
  if (optimizer == "sgd") {  // PyTorch's SGD takes these from the group that it loads
    const Dict own{
        {"momentum", option("sgd-momentum", 0.9)}, {"dampening", 0.0}, {"nesterov", false}};
    group.insert(group.end(), own.begin(), own.end());
  }
  return group;
}

}  // namespace bloomery
