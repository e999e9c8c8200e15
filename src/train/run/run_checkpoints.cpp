#include "train/run/run_checkpoints.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>

#include "checkpoint/boxes.h"
#include "checkpoint/hf/hf_origin.h"
#include "comm/world.h"
#include "config/json_fields.h"
#include "nn/adapter.h"
#include "ops/matmul/choices.h"
#include "optim/optimizer_choice.h"
#include "train/run/initial_model.h"
#include "train/run/loaded_libraries.h"
#include "train/step/layer_states.h"
#include "train/step/schedule_record.h"

namespace bloomery {
namespace {

constexpr const char* kOptimizerSteps = "optimizer_steps";
constexpr const char* kSchedulePosition = "schedule_position";
constexpr const char* kSkippedSteps = "skipped_steps";
constexpr const char* kConsumedTokens = "consumed_tokens";
constexpr const char* kSchedule = "schedule";
// What belongs to a parameter has a name of its own behind the parameter's.
constexpr char kBehindName = '/';
constexpr std::string_view kPadding = "/padding";

using Part = ParameterStore::Part;

// The tensor that a part is of. Padding rows are stored only when they take part in the softmax and
// thus learn: all ranks' rows of a parameter, one after another, are a tensor of their own.
std::string stored_name(const Part& part) {
  return part.is_padding ? concat(part.parameter->name, kPadding) : part.parameter->name;
}

// The true rows of the parameters, and the padding rows that learn.
std::vector<Part> learning_parts(Rank& rank) {
  std::vector<Part> parts = rank.store().parts();
  std::erase_if(parts, [&](const Part& part) {
    return part.is_padding && !rank.options().model.vocabulary.padded_in_softmax;
  });
  return parts;
}

std::int64_t stored_number(const CheckpointReader& reader, const char* name) {
  const auto& extra = reader.state().extra;
  const auto found = extra.find(name);
  std::int64_t number = 0;
  const bool read = found != extra.end() && (std::istringstream(found->second) >> number);
  check(read, reader.folder().string(), ": damaged: its manifest has no number ", name);
  return number;
}

// Reads parts of tensors with all threads of the rank, so many bytes at a time.
class PartLoader {
 public:
  PartLoader(Stream& stream, const CheckpointReader& reader) : stream_(stream), reader_(reader) {}

  void add(const std::string& name, const Part& part, const MasterWeights& to) {
    const DType dtype = reader_.tensor(name).dtype;
    for (std::int64_t first = 0; first < part.count; first += kElements) {
      const std::int64_t count = std::min(kElements, part.count - first);
      std::int64_t at = first;
      for (const Box& box : boxes_of_range(part.box, part.first + first, count)) {
        const std::int64_t size = box.extent.numel();
        waiting_.push_back({name, box, dtype, to.range(at, size), bytes_});
        bytes_ += static_cast<std::size_t>(size) * size_of(dtype);
        at += size;
      }
      if (bytes_ >= kBytesAtOnce) {
        load();
      }
    }
  }

  void load() {
    buffer_.resize(bytes_);
    std::vector<CheckpointReader::Request> requests;
    for (const Waiting& each : waiting_) {
      requests.push_back({each.name, each.box, bytes_of(each)});
    }
    reader_.read(requests, stream_.device().pool());
    for (const Waiting& each : waiting_) {
      const Tensor room = each.to.room(stream_);
      put(stream_, each.dtype, bytes_of(each), room);
      each.to.set(stream_, room);
    }
    stream_.synchronize();
    waiting_.clear();
    bytes_ = 0;
  }

 private:
  static constexpr std::int64_t kElements = 4 << 20;  // of one request
  static constexpr std::size_t kBytesAtOnce = 256 << 20;
  struct Waiting {
    std::string name;
    Box box;
    DType dtype;
    MasterWeights to;
    std::size_t at;  // in the buffer
  };
  std::span<std::byte> bytes_of(const Waiting& each) {
    return std::span(buffer_).subspan(
        each.at, static_cast<std::size_t>(each.to.numel()) * size_of(each.dtype));
  }

  Stream& stream_;
  const CheckpointReader& reader_;
  std::vector<Waiting> waiting_;
  std::size_t bytes_ = 0;
  std::vector<std::byte> buffer_;
};

// The first parameter that is trained.
const Parameter& trained(const ParameterList& parameters) {
  return **std::ranges::find_if(parameters, [](const Parameter* each) { return !each->frozen; });
}

// What the checkpoint of a run that is to have one still lacks: it starts from initial values.
bool lacks_adapter(const Rank& rank, const CheckpointReader& reader) {
  return rank.options().model.adapter.enabled &&
         !model_record(reader.state(), reader.folder().string()).model.adapter.enabled;
}

// Whether the run that saved it says so; a converted checkpoint says nothing.
bool is_of_other_rule(const OptimizerRule& rule, const CheckpointReader& reader) {
  const JsonFields options(reader.state().options, reader.folder().string());
  const auto word = options.find<std::string>("optimizer");
  return word && std::ranges::any_of(optimizer_words(), [&](const auto& each) {
           return each.first == *word && each.second.index() != rule.index();
         });
}

// The checkpoint has the tensors that the optimizer declares, and no others.
void check_state_fits(const Rank& rank, const CheckpointReader& reader) {
  const std::string place = reader.folder().string();
  const std::string& probe = trained(rank.parameters()).name;
  std::set<std::string> stored, declared;
  for (const StateTensor& tensor : every_state_tensor()) {
    if (reader.contains(state_name(probe, tensor))) {
      stored.insert(tensor.name);
    }
  }
  for (const StateTensor& tensor : state_of(rank.options().optimizer.rule)) {
    declared.insert(tensor.name);
  }
  check(!stored.empty(), place,
        " has no optimizer state: give --no-load-optim to continue with a fresh one, or --finetune "
        "to start at iteration 0");
  check(stored == declared && !is_of_other_rule(rank.options().optimizer.rule, reader), place,
        " was saved by another kind of optimizer; give the same "
        "--optimizer, or --no-load-optim");
}

void check_fits(const Rank& rank, const CheckpointReader& reader, bool optimizer) {
  const std::string place = reader.folder().string();
  const bool new_adapter = lacks_adapter(rank, reader);
  std::string wrong;
  int count = 0;
  const auto complain = [&](const std::string& line) {
    constexpr int kShown = 5;
    if (++count <= kShown) {
      wrong += "\n  " + line;
    }
  };
  ParameterList parameters = rank.parameters();
  if (new_adapter) {
    std::erase_if(parameters, [](const Parameter* p) { return is_adapter_parameter(p->name); });
  }
  for (const Parameter* each : parameters) {
    const Parameter& parameter = *each;
    if (!reader.contains(parameter.name)) {
      complain(concat(parameter.name, " is not in the checkpoint"));
    } else if (const Shape& stored = reader.tensor(parameter.name).shape;
               !(stored == parameter.box.global)) {
      complain(concat(parameter.name, " is ", stored, " in the checkpoint and ",
                      parameter.box.global, " by the flags"));
    }
  }
  std::size_t weights = 0;
  for (const std::string& name : reader.names()) {
    weights += name.find(kBehindName) == std::string::npos ? 1 : 0;
  }
  const bool whole = rank.options().layout.degrees.pipeline == 1;
  if (count == 0 && whole && weights != parameters.size()) {
    complain(concat("the checkpoint has ", weights, " tensors of weights, the model ",
                    parameters.size()));
  }
  for (const std::string& line :
       model_differences(new_adapter ? without_adapter(rank.options().model) : rank.options().model,
                         model_record(reader.state(), place).model)) {
    complain(line);
  }
  check(count == 0, place, " holds another model (", count,
        " differences); give the model flags that it was trained with:", wrong);
  check(!optimizer || !new_adapter, place,
        " is of a run without --lora: give --finetune to start an adapter beside its weights");
  if (optimizer) {
    check_state_fits(rank, reader);
  }
}

void load_step_state(Rank& rank, const CheckpointReader& reader) {
  const RunState& stored = reader.state();
  StepState state = rank.optimizer().state();
  state.num_steps = stored_number(reader, kOptimizerSteps);
  state.num_samples = stored_number(reader, kSchedulePosition);
  state.num_skipped = stored_number(reader, kSkippedSteps);
  const bool had_scale = model_record(stored, reader.folder().string()).dtype == DType::fp16;
  if (rank.options().optimizer.loss_scale.dynamic && had_scale) {
    state.loss_scale = {stored.loss_scale.scale, stored.loss_scale.clean_steps,
                        stored.loss_scale.tolerance_left};
  }
  rank.optimizer().set_state(state);
}

// Which kernels serve which products: others might give other bits.
void load_choices(Rank& rank, const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  rank.stream().device().service<MatmulChoices>().load(lines);
}

ParameterList quantized_weights(Rank& rank) {
  return rank.stage().quantized() != nullptr ? rank.stage().quantized()->weights()
                                             : ParameterList();
}

// Whole rows of a tensor, as far as a rank needs them, in pieces: of these the codes are made.
void load_quantized(Rank& rank, const CheckpointReader& reader, const Parameter& weight) {
  Stream& stream = rank.stream();
  const DType dtype = reader.tensor(weight.name).dtype;
  const Box all = QuantizedWeights::whole_rows(weight);
  const std::int64_t columns = all.extent.back(), step = QuantizedWeights::rows_at_once(weight);
  std::vector<std::byte> bytes;
  for (std::int64_t row = 0; row < all.extent.rows(); row += step) {
    const std::int64_t count = std::min(step, all.extent.rows() - row);
    bytes.resize(static_cast<std::size_t>(count * columns) * size_of(dtype));
    std::vector<CheckpointReader::Request> requests;
    std::span<std::byte> rest = bytes;
    for (const Box& box : boxes_of_range(all, row * columns, count * columns)) {
      const std::size_t size = static_cast<std::size_t>(box.extent.numel()) * size_of(dtype);
      requests.push_back({weight.name, box, rest.first(size)});
      rest = rest.subspan(size);
    }
    reader.read(requests, stream.device().pool());
    const Tensor rows = Tensor::empty(stream, rank.options().dtype, {count, columns});
    put(stream, dtype, bytes, rows);
    rank.stage().quantized()->put_rows(weight, row, rows);
    stream.synchronize();  // the host bytes end here
  }
}

void load_part(PartLoader& loader, Rank& rank, const Part& part, bool optimizer) {
  const std::string name = stored_name(part);
  loader.add(name, part, part.weights);
  if (optimizer && part.shard) {
    const FlatShard& shard = rank.optimizer().shards()[*part.shard];
    const std::span<const StateTensor> declared = rank.optimizer().state_tensors();
    for (std::size_t i = 0; i < declared.size(); ++i) {
      loader.add(state_name(name, declared[i]), part,
                 {.whole = shard.state[i].range(part.at, {part.count})});
    }
  }
}

// Padding rows that cannot be taken over begin at their initial values, and the notes say so.
void load_padding(PartLoader& loader, Rank& rank, const CheckpointReader& reader,
                  const std::vector<Part>& parts, bool optimizer, std::vector<std::string>& notes) {
  const auto is_padding = [](const std::string& name) { return name.ends_with(kPadding); };
  const bool stored = std::ranges::any_of(reader.names(), is_padding);
  bool any = false, same = true;
  for (const Part& part : parts) {
    if (!part.is_padding) {
      continue;
    }
    any = true;
    const std::string name = stored_name(part);
    if (reader.contains(name) && reader.tensor(name).shape == part.box.global) {
      load_part(loader, rank, part, optimizer);
    } else {
      same = false;
    }
  }
  // Not every rank has such rows.
  same = same && (rank.mesh().world().size() > 1 || stored == any);
  if (!same) {
    notes.push_back(
        concat("the padding rows of the vocabulary, which --padded-vocab-in-softmax trains, are "
               "others in ",
               reader.folder().string(),
               " than here (that flag, --make-vocab-size-divisible-by or the "
               "number of tensor-parallel ranks differs): the run goes on, but no longer bit for "
               "bit as one "
               "that was never interrupted"));
  }
}

// What the codes stand for, of which they come back. Replicas have the same.
void add_quantized(HostStaging& stage, Rank& rank) {
  for (const Parameter* weight : quantized_weights(rank)) {
    if (rank.mesh().index(weight->grad_axes) == 0) {
      stage.add_made(weight->name, rank.options().dtype, weight->box, [&rank, weight](void* to) {
        const Tensor value = value_of(rank.stream(), *weight);
        rank.stream().copy(to, value.data(), value.bytes());
      });
    }
  }
}

std::string choices_text(Rank& rank) {
  std::string text;
  for (const std::string& line : rank.stream().device().service<MatmulChoices>().lines()) {
    text += line + "\n";
  }
  return text;
}

}  // namespace

LoadedProgress load_checkpoint(Rank& rank, const CheckpointReader& reader, LoadScope scope) {
  const bool optimizer = scope == LoadScope::everything;
  check_fits(rank, reader, optimizer);
  rank.store().wait_gathers();
  std::vector<Part> parts = learning_parts(rank);
  if (lacks_adapter(rank, reader)) {
    std::erase_if(parts, [](const Part& p) { return is_adapter_parameter(p.parameter->name); });
  }
  PartLoader loader(rank.stream(), reader);
  for (const Part& part : parts) {
    if (!part.is_padding) {
      load_part(loader, rank, part, optimizer);
    }
  }
  LoadedProgress loaded;
  load_padding(loader, rank, reader, parts, optimizer, loaded.notes);
  loader.load();
  for (const Parameter* weight : quantized_weights(rank)) {
    load_quantized(rank, reader, *weight);
  }
  if (scope == LoadScope::weights) {
    return {};
  }
  if (optimizer) {
    load_step_state(rank, reader);
  }
  load_layer_states(rank, reader, loaded.notes);
  load_choices(rank, reader.state().choices);
  loaded.has_tokens = reader.state().extra.contains(kConsumedTokens);
  loaded.progress = {reader.state().step, reader.state().consumed_samples,
                     loaded.has_tokens ? stored_number(reader, kConsumedTokens) : 0};
  return loaded;
}

void take_over_loaded(Rank& rank) {
  rank.store().refresh_from_master();
  rank.stream().synchronize();
}

RunCheckpoints::RunCheckpoints(Rank& rank, const CheckpointFlags& flags, const RunFacts& facts)
    : rank_(rank), flags_(flags), facts_(facts), stage_(rank.stream()) {
  // Of ranks that hold the same the first saves it.
  const std::vector<Part> parts = rank.store().parts();
  const bool saves =
      std::ranges::any_of(parts, [](const Part& part) { return part.is_first_holder; });
  Communicator& world = rank.mesh().world();
  group_ = world.split(saves ? 0 : 1, world.rank());
  if (!saves) {
    return;
  }
  const SaveOptions options{.asynchronous = true,
                            .keep = {.last = flags.keep_last, .every = flags.keep_every},
                            .own_step = facts.own_step};
  writer_ = std::make_unique<CheckpointWriter>(flags.save, save_group(group_->host()), options);
  add_parameters();
  add_quantized(stage_, rank);
  add_layer_states(stage_, rank);
  stage_.reserve();
  room_ = writer_->probe(stage_.bytes());
}

RunCheckpoints::~RunCheckpoints() = default;

void RunCheckpoints::add_parameters() {
  for (const Part& part : learning_parts(rank_)) {
    if (!part.is_first_holder) {
      continue;
    }
    const std::string name = stored_name(part);
    add_weights(name, part);
    if (!flags_.no_save_optim && part.shard) {
      const FlatShard& shard = rank_.optimizer().shards()[*part.shard];
      const std::span<const StateTensor> declared = rank_.optimizer().state_tensors();
      for (std::size_t i = 0; i < declared.size(); ++i) {
        const Tensor tensor = shard.state[i].range(part.at, {part.count});
        stage_.add_range(state_name(name, declared[i]), tensor.dtype(), part.box, part.first,
                         part.count, tensor.data());
      }
    }
  }
}

void RunCheckpoints::add_weights(const std::string& name, const Part& part) {
  std::int64_t at = 0;
  for (const Box& box : boxes_of_range(part.box, part.first, part.count)) {
    const MasterWeights weights = part.weights.range(at, box.extent.numel());
    stage_.add_made(name, weights.dtype(), box, [stream = &rank_.stream(), weights](void* to) {
      weights.copy_to(*stream, to);
    });
    at += box.extent.numel();
  }
}

RunState RunCheckpoints::state(const Progress& progress) const {
  const StepState step = rank_.optimizer().state();
  RunState state;
  state.step = progress.iteration;
  state.consumed_samples = progress.consumed_samples;
  state.loss_scale = {step.loss_scale.scale, step.loss_scale.clean_steps,
                      step.loss_scale.tolerance_left};
  state.options = facts_.options;
  state.data_indices = facts_.data_indices;
  state.choices = choices_text(rank_);
  state.extra = {{kOptimizerSteps, std::to_string(step.num_steps)},
                 {kSchedulePosition, std::to_string(step.num_samples)},
                 {kSkippedSteps, std::to_string(step.num_skipped)},
                 {kConsumedTokens, std::to_string(progress.consumed_tokens)},
                 {kSchedule, to_json(facts_.schedule)}};
  describe_layer_states(rank_, state);
  set_model_record(state, facts_.model);
  set_hf_origin(state, facts_.hf_origin);
  if (facts_.model.tokenizer) {
    set_carried_tokenizer(state, *facts_.model.tokenizer);
  }
  state.machine = concat(rank_.stream().device().description(), loaded_library_versions());
  return state;
}

void RunCheckpoints::save(const Progress& progress) {
  if (writer_) {
    writer_->save([&] {
      Snapshot snapshot = stage_.take(state(progress));
      // A failure may have cut off collectives of the last step: such weights are not kept.
      if (World* const world = rank_.mesh().host().world()) world->check_failed();
      snapshot.files = facts_.tokenizer_files;
      return snapshot;
    });
  }
}

std::optional<SaveOutcome> RunCheckpoints::poll() {
  return writer_ ? writer_->poll() : std::nullopt;
}

}  // namespace bloomery
