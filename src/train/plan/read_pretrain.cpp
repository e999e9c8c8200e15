#include "train/plan/read_pretrain.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/hf/adapter.h"
#include "checkpoint/hf/adapter_layers.h"
#include "checkpoint/missing_model.h"
#include "checkpoint/stored_model.h"
#include "models/record.h"
#include "train/plan/model_sizes.h"
#include "train/plan/plan.h"
#include "train/plan/read_deepspeed.h"
#include "train/plan/teacher_model.h"

namespace bloomery {
namespace {

using Notes = std::vector<std::string>;

// The preset fills what no flag gives.
void apply_model_size(PretrainOptions& o, const Environment& environment, Notes& notes) {
  std::string place = "--model-size";
  if (o.model_size.empty() && environment.model_size_key) {
    o.model_size = *environment.model_size_key;
    place = "MODEL_SIZE_KEY";
  }
  if (o.model_size.empty()) {
    return;
  }
  const ModelSize& size = find_model_size(o.model_size);
  const auto fill = [&](std::int64_t& field, std::int64_t value, const char* flag) {
    if (field != 0 && field != value) {
      notes.push_back(
          concat(flag, " ", field, " overrides the ", value, " of ", place, " ", size.name));
    }
    field = field != 0 ? field : value;
  };
  fill(o.model.num_layers, size.num_layers, "--num-layers");
  fill(o.model.hidden_size, size.hidden_size, "--hidden-size");
  fill(o.model.attention.num_heads, size.num_attention_heads, "--num-attention-heads");
}

// --load-tag names one checkpoint of --load.
void apply_load_tag(CheckpointFlags& o) {
  if (o.load_tag.empty()) {
    return;
  }
  check(!o.load.empty(), "--load-tag ", o.load_tag, " needs --load FOLDER");
  const std::size_t digits = o.load_tag.find_last_not_of("0123456789") + 1;
  const std::string prefix = o.load_tag.substr(0, digits);
  check(digits < o.load_tag.size() &&
            (prefix.empty() || prefix == "step-" || prefix == "global_step" || prefix == "iter_"),
        "--load-tag ", o.load_tag,
        ": give the number of a step, as 100, step-100, global_step100 or iter_0000100");
  const std::filesystem::path folder = o.load;
  o.load = (folder / ("step-" + o.load_tag.substr(digits))).string();
  for (const std::string& name : {o.load_tag, "global_step" + o.load_tag.substr(digits)}) {
    if (!std::filesystem::exists(o.load) && std::filesystem::exists(folder / name)) {
      o.load = (folder / name).string();  // DeepSpeed's or Megatron's
    }
  }
  check(std::filesystem::exists(o.load), "--load-tag ", o.load_tag, ": there is no ", o.load);
}

// In place of the head that a model has.
void set_task_head(const TaskKind& task, ModelOptions& model) {
  if (task.answer == TaskAnswer::passage) {
    return;  // vectors of texts are compared as they are
  }
  model.task.kind = task.answer == TaskAnswer::choice   ? TaskHeadKind::multiple_choice
                    : task.answer == TaskAnswer::number ? TaskHeadKind::regression
                                                        : TaskHeadKind::classification;
  if (!task.labels.empty()) {
    model.task.classes = static_cast<std::int64_t>(task.labels.size());
  }
  model.segments.binary_head = false;
}

// The model of --load in place of flags. Its tokenizer too, where none is named.
void take_stored_model(OptionTable& table, PretrainOptions& o, Notes& notes) {
  const CheckpointFlags& flags = o.checkpoint;
  std::string folder = flags.load;
  std::optional<ModelRecord> stored;
  if (!folder.empty() && (flags.use_checkpoint_args || is_hf_folder(folder))) {
    stored = stored_model(folder);
  }
  if (!stored && o.task.enabled() && !flags.start.empty()) {
    folder = flags.start;
    stored = stored_model(folder);
    check(stored.has_value(), "--pretrained-checkpoint ", folder, ": the folder has no model");
  }
  if (!stored) {
    return;
  }
  if (o.task.enabled()) {
    set_task_head(o.task.kind(), stored->model);
    if (stored->model.family == find_family(o.model.family).starts_from) {
      stored->model = as_family(stored->model, o.model);
    }
  }
  const auto has_own = [](const std::string& family) {
    return find_family(family).describe != nullptr;
  };
  const std::string& family = stored->model.family;
  const std::string next = o.task.enabled()
                               ? concat("--task ", o.task.name, " tunes a ", o.model.family)
                               : concat("give --model-family ", family);
  check(family == o.model.family || (!has_own(family) && !has_own(o.model.family)), folder,
        " holds a model of the family ", family, ": ", next);
  o.model.family = family;
  read_record(table, stored->model, folder);
  o.model.vocabulary.size = stored->model.vocabulary.size;
  notes.insert(notes.end(), stored->notes.begin(), stored->notes.end());
  if (stored->tokenizer && !names_tokenizer(o.tokenizer)) {
    o.tokenizer = *stored->tokenizer;
  }
}

void require_model(const char* flag, const std::string& folder) {
  if (!holds_model(folder)) {
    throw Error(concat(flag, ": ", missing_model(folder)));
  }
}

// A run goes on where it is loaded from its own folder; anything else gives the weights alone.
void apply_finetune(PretrainOptions& o) {
  CheckpointFlags& flags = o.checkpoint;
  check(!flags.load.empty(),
        "finetune needs --load: a Hugging Face folder or a checkpoint with the model to tune");
  require_model("--load", flags.load);
  flags.finetune = flags.save.empty() || !same_folder(flags.load, flags.save);
  const LengthOptions& length = o.length;
  if (!length.iterations && !length.samples && !length.tokens) {
    o.instruct.epochs = o.instruct.epochs.value_or(3);
    o.length.iterations = 1;  // until the records are counted
  }
}

// The texts of a retriever's tuning have a length of their own.
void apply_questions(const OptionTable& table, PretrainOptions& o, Notes& notes) {
  if (o.task.kind().answer != TaskAnswer::passage) {
    for (const std::string& flag : question_option_names()) {
      if (table.given(flag)) {
        notes.push_back(concat("--", flag, " has no effect: it is for --task RET-FINETUNE-NQ"));
      }
    }
    return;
  }
  const QuestionOptions& questions = o.task.questions;
  o.data.seq_length = questions.length;
  if (table.given("seq-length")) {
    notes.push_back("--seq-length has no effect: --retriever-seq-length gives the length");
  }
  if (questions.with_negatives != (questions.hard_negatives > 0)) {
    notes.push_back(questions.with_negatives
                        ? "--train-with-neg has no effect without --train-hard-neg N"
                        : "--train-hard-neg has no effect without --train-with-neg");
  }
}

// --load is the run itself, which goes on where it is there; any other model is one to start from.
void apply_task(const OptionTable& table, PretrainOptions& o, Notes& notes) {
  CheckpointFlags& flags = o.checkpoint;
  if (!flags.pretrained.empty()) {
    if (!flags.start.empty()) {
      notes.push_back(
          "--bert-load has no effect: the weights are those of --pretrained-checkpoint");
    }
    flags.start = flags.pretrained;
  }
  if (flags.start.empty() && !flags.load.empty() &&
      (flags.save.empty() || !same_folder(flags.load, flags.save))) {
    require_model("--load", flags.load);
    flags.start = std::exchange(flags.load, "");
  } else if (!flags.start.empty()) {
    require_model("--pretrained-checkpoint", flags.start);
  }
  for (const char* flag : {"train-iters", "train-samples", "train-tokens"}) {
    if (table.given(flag)) {
      notes.push_back(concat("--", flag, " has no effect: --epochs gives the length of a task"));
    }
  }
  o.instruct.epochs = o.instruct.epochs.value_or(3);
  o.length = {.iterations = 1};  // until the samples are counted
  o.evaluation.skip_train = *o.instruct.epochs == 0;
  apply_questions(table, o, notes);
}

// What TRL's trainer has as defaults: a low rate, and no dropout, whatever the model was made with.
void apply_preference(const OptionTable& table, PretrainOptions& o, Notes& notes) {
  if (!o.instruct.pairs) {
    for (const char* flag : {"dpo-beta", "dpo-loss", "dpo-label-smoothing"}) {
      if (table.given(flag)) {
        notes.push_back(concat("--", flag, " has no effect without --dpo"));
      }
    }
    return;
  }
  const auto chosen = [&](const char* flag) {
    const std::optional<OptionRow::Given>& given = table.row(flag).given;
    return given && given->source != OptionRow::Source::record;
  };
  if (!chosen("lr")) {
    o.rate.rate = 1e-6;
  }
  if (!chosen("hidden-dropout")) {
    o.model.residual.dropout = 0;
  }
  if (!chosen("attention-dropout")) {
    o.model.attention.dropout = 0;
  }
}

// Options of an adapter in PEFT's files. A run that goes on has its own already.
void take_stored_adapter(const OptionTable& table, PretrainOptions& o, Notes& notes) {
  const std::string& folder = o.checkpoint.adapter;
  AdapterOptions& a = o.model.adapter;
  const std::optional<OptionRow::Given>& given = table.row("lora").given;
  if (a.enabled && given && given->source == OptionRow::Source::record) {
    check(!o.checkpoint.finetune, o.checkpoint.load,
          " has an adapter already, beside which --adapter ", folder,
          " has no place: merge it first (bloomery convert --to hf)");
    notes.push_back("--adapter has no effect: the run continues with its own adapter");
    return;
  }
  Device host(DeviceOptions{});
  Stream stream(host);
  const Adapter adapter(stream, folder);
  check(adapter.one_rank(), "--adapter ", folder,
        ": its modules have several ranks, which can be merged but not trained");
  AdapterOptions stored = adapter.options(model_options(o, 1));
  const auto require = [&](const char* flag, auto given, auto value) {
    check(!table.given(flag) || given == value, "--", flag, " ", given, ", but the adapter of ",
          folder, " has ", value, "; leave the flag out");
  };
  require("lora-rank", a.rank, stored.rank);
  require("lora-alpha", a.alpha, stored.alpha);
  require("use-rslora", a.by_root, stored.by_root);
  check(!table.given("lora-target-modules"), "--lora-target-modules: the adapter of ", folder,
        " says which they are; leave it out");
  stored.dropout = table.given("lora-dropout") ? a.dropout : stored.dropout;
  a = stored;
}

void apply_adapter(const OptionTable& table, PretrainOptions& o, Notes& notes) {
  AdapterOptions& a = o.model.adapter;
  if (!o.checkpoint.adapter.empty()) {
    return take_stored_adapter(table, o, notes);
  }
  if (a.enabled) {
    a.targets = adapter_targets(model_options(o, 1), a.targets);
    return;
  }
  for (const char* flag :
       {"lora-rank", "lora-alpha", "use-rslora", "lora-dropout", "lora-target-modules"}) {
    if (table.given(flag)) {
      notes.push_back(concat("--", flag, " has no effect without --lora"));
    }
  }
}

// Megatron-LM names the kind of positions, for which Megatron-DeepSpeed and we have flags.
std::vector<std::string> with_flags_of_positions(std::vector<std::string> arguments) {
  const std::map<std::string, std::string> flags = {{"rope", "--use-rotary-position-embeddings"},
                                                    {"learned_absolute", "--position-embedding"},
                                                    {"none", "--no-position-embedding"}};
  const auto found = std::ranges::find(arguments, "--position-embedding-type");
  const auto word = found == arguments.end() ? found : std::next(found);
  if (word != arguments.end() && flags.contains(*word)) {
    *found = flags.at(*word);
    arguments.erase(word);
  }
  return arguments;
}

// Megatron's tasks have a --keep-last without a number.
std::vector<std::string> with_flag_of_last_batch(std::vector<std::string> arguments,
                                                 const TaskOptions& task) {
  for (std::size_t i = 0; task.enabled() && i < arguments.size(); ++i) {
    const bool alone = i + 1 == arguments.size() || arguments[i + 1].starts_with("--");
    if (alone && (arguments[i] == "--keep-last" || arguments[i] == "--keep_last")) {
      arguments[i] = "--keep-last-batch";
    }
  }
  return arguments;
}

// What Megatron's programs take when no type is named.
void apply_tokenizer_default(TokenizerOptions& o, const SampleKind& samples) {
  if (o.path.empty() && o.type.empty() && !o.vocab_file.empty()) {
    o.type = samples.of_sentences ? "BertWordPieceLowerCase" : "GPT2BPETokenizer";
  }
}

// The files of the data analyzer number the samples of whole epochs.
void apply_sampling_defaults(PretrainOptions& o, Notes& notes) {
  const SamplingFlags& s = o.sampling;
  if (s.enabled() && !o.data.train_data_exact_num_epochs) {
    o.data.train_data_exact_num_epochs = 1;
    notes.push_back(
        "the curriculum chooses among the samples of one epoch, as `data analyze` numbers them; "
        "--train-data-exact-num-epochs says otherwise");
  }
  if (s.asked && !s.enabled()) {
    notes.push_back(
        "--data-efficiency-curriculum-learning has no effect: data_efficiency, its data_sampling "
        "and curriculum_learning there must be enabled");
  }
  if (o.random_ltd.asked && !o.random_ltd_enabled()) {
    notes.push_back(
        "--random-ltd has no effect: data_efficiency, its data_routing and random_ltd there must "
        "be enabled");
  }
  if (!s.asked && s.data_efficiency && s.sampling && s.curriculum) {
    notes.push_back(
        "data_efficiency.data_sampling has no effect without "
        "--data-efficiency-curriculum-learning, as in Megatron-DeepSpeed");
  }
  if (!o.random_ltd.asked && s.data_efficiency && o.random_ltd.routing &&
      o.random_ltd.enabled_in_json) {
    notes.push_back(
        "data_efficiency.data_routing has no effect without --random-ltd, as in "
        "Megatron-DeepSpeed");
  }
}

void add_notes(const OptionTable& table, const PretrainOptions& o, Notes& notes) {
  for (const char* flag : {"fp8-margin", "fp8-interval", "fp8-amax-history-len",
                           "fp8-amax-compute-algo", "fp8-recipe", "fp8-wgrad"}) {
    if (o.precision.fp8.format == Fp8Flags::Format::none && table.given(flag)) {
      notes.push_back(concat("--", flag, " has no effect without --fp8-format"));
    }
  }
  if (o.precision.dtype != DType::fp16 && o.precision.loss_scale.value_or(1) > 1) {
    notes.push_back(concat("--loss-scale ", *o.precision.loss_scale,
                           " has no effect: only fp16 needs a loss scale"));
  }
  if (o.checkpoint.save.empty()) {
    notes.push_back("without --save no checkpoint is written");
  }
}

}  // namespace

std::string missing_load(const CheckpointFlags& flags) {
  const auto is_own = [&] {  // where a first start finds nothing
    return !flags.save.empty() && same_folder(flags.load, flags.save);
  };
  if (flags.load.empty() || is_own() || holds_model(flags.load)) {
    return "";
  }
  return concat("--load: ", missing_model(flags.load),
                ". Training starts from random weights where --load is left out or is the folder "
                "of --save");
}

Environment read_environment(int processes) {
  const char* const key = std::getenv("MODEL_SIZE_KEY");
  Environment environment{.processes = processes};
  if (key != nullptr && *key != '\0') {
    environment.model_size_key = key;
  }
  return environment;
}

std::vector<std::string> read_pretrain(OptionTable& table, PretrainOptions& options,
                                       const std::vector<std::string>& arguments,
                                       const Environment& environment) {
  Notes notes;
  table.read_flags(with_flag_of_last_batch(with_flags_of_positions(arguments), options.task));
  std::vector<std::string> further;
  try {
    read_deepspeed(table, options, notes);
    apply_model_size(options, environment, notes);
    apply_load_tag(options.checkpoint);
    if (options.instruct.enabled) {
      apply_finetune(options);
    }
    if (options.task.enabled()) {
      apply_task(table, options, notes);
    }
    take_stored_model(table, options, notes);
    if (options.task.enabled()) {
      set_task_head(options.task.kind(), options.model);
    }
    apply_adapter(table, options, notes);
    read_teacher(table, options, notes);
    if (options.instruct.enabled) {
      apply_preference(table, options, notes);
    }
    const std::int64_t places = options.model.positions.max_length;
    const bool tuned = options.instruct.enabled || options.task.enabled();
    const bool questions =
        options.task.enabled() && options.task.kind().answer == TaskAnswer::passage;
    const char* const length = questions ? "retriever-seq-length" : "seq-length";
    if (tuned && !table.given(length) && places > 0) {
      options.data.seq_length = std::min(options.data.seq_length, places);
    }
  } catch (const Error& error) {
    further.push_back(error.what());
  }
  apply_sampling_defaults(options, notes);
  apply_tokenizer_default(options.tokenizer, sample_kind(options));
  options.parallel.processes = environment.processes;
  apply_batch_flags(table, options, notes);
  if (table.problems().empty() && further.empty()) {
    further = problems(options);  // of values that were read, not of defaults in their stead
  }
  table.finish(further);
  add_notes(table, options, notes);
  notes.insert(notes.begin(), table.notes().begin(), table.notes().end());
  return notes;
}

}  // namespace bloomery
