#include "train/run_checkpoints.h"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "checkpoint/boxes.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/matmul/choices.h"
#include "train/loaded_libraries.h"
#include "train/schedule_record.h"

namespace bloomery {
namespace {

constexpr const char* kOptimizerSteps = "optimizer_steps";
constexpr const char* kSchedulePosition = "schedule_position";
constexpr const char* kSkippedSteps = "skipped_steps";
constexpr const char* kSchedule = "schedule";
constexpr std::string_view kPadding = "/padding";  // behind a parameter's name

// What of a stored tensor this rank's shard has: elements [first, first + count) of its part `box`,
// at element `at` of the shard's tensors.
struct ShardPart {
  std::string name;
  Box box;
  std::int64_t first, count, at;
};

// The tensor whose part `box` is at element `begin` of the flat buffers.
void add_shard_part(std::vector<ShardPart>& parts, const FlatLayout& layout, std::string name,
                    const Box& box, std::int64_t begin) {
  const std::int64_t first = std::max(begin, layout.shard_begin());
  const std::int64_t end = std::min(begin + box.extent.numel(), layout.shard_end());
  if (first < end) {
    parts.push_back(
        {std::move(name), box, first - begin, end - first, first - layout.shard_begin()});
  }
}

// The true rows of the parameters.
std::vector<ShardPart> shard_parts(GptRank& rank) {
  std::vector<ShardPart> parts;
  for (const FlatLayout::Place& place : rank.layout().places()) {
    const Parameter& parameter = *place.parameter;
    add_shard_part(parts, rank.layout(), parameter.name, parameter.box, place.first);
  }
  return parts;
}

// Their padding rows, which are stored only when they take part in the softmax and thus learn. All
// ranks' padding rows of a parameter, one after another, are a tensor of their own.
std::vector<ShardPart> padding_parts(GptRank& rank) {
  std::vector<ShardPart> parts;
  for (const FlatLayout::Place& place : rank.layout().places()) {
    const Parameter& parameter = *place.parameter;
    const std::int64_t rows = parameter.local_shape.rank() > 0 ? parameter.local_shape[0] : 0;
    if (!rank.options().model.vocabulary.padded_in_softmax ||
        parameter.local_shape == parameter.box.extent) {
      continue;
    }
    const std::int64_t true_rows = parameter.box.global[0];
    Shape global = parameter.box.global;
    global[0] = rows * rank.mesh().degree(Axis::tensor) - true_rows;
    Box box = Box::whole(global);
    box.extent[0] = rows - parameter.box.extent[0];
    box.offset[0] =
        rows * rank.mesh().coordinate(Axis::tensor) + parameter.box.extent[0] - true_rows;
    add_shard_part(parts, rank.layout(), concat(parameter.name, kPadding), box,
                   place.first + parameter.box.extent.numel());
  }
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

// Reads a part of a tensor of any dtype into the fp32 elements from `at` of `to`.
void load_tensor(GptRank& rank, const CheckpointReader& reader, const std::string& name,
                 const ShardPart& part, const Tensor& to) {
  Stream& stream = rank.stream();
  const DType dtype = reader.tensor(name).dtype;
  std::int64_t at = part.at;
  for (const Box& box : boxes_of_range(part.box, part.first, part.count)) {
    const std::int64_t count = box.extent.numel();
    std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size_of(dtype));
    reader.read(name, box, bytes);
    const Tensor place = to.range(at, {count});
    if (dtype == to.dtype()) {
      stream.copy(place.data(), bytes.data(), bytes.size());
    } else {
      const Tensor stored = Tensor::empty(stream, dtype, {count});
      stream.copy(stored.data(), bytes.data(), bytes.size());
      launch(stream, ScaleAdd{.x = stored, .y = place});
    }
    stream.synchronize();  // the host bytes end here
    at += count;
  }
}

void check_fits(const GptRank& rank, const CheckpointReader& reader, FlatLayout& layout,
                bool optimizer) {
  const std::string place = reader.folder().string();
  std::string wrong;
  int count = 0;
  const auto complain = [&](const std::string& line) {
    constexpr int kShown = 5;
    if (++count <= kShown) {
      wrong += "\n  " + line;
    }
  };
  for (const FlatLayout::Place& place : layout.places()) {
    const Parameter& parameter = *place.parameter;
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
    weights += is_moment_name(name) || name.ends_with(kPadding) ? 0 : 1;
  }
  if (count == 0 && weights != layout.places().size()) {
    complain(concat("the checkpoint has ", weights, " tensors of weights, the model ",
                    layout.places().size()));
  }
  for (const std::string& line :
       model_differences(rank.options().model, model_record(reader.state(), place).model)) {
    complain(line);
  }
  check(count == 0, place, " holds another model (", count,
        " differences); give the model flags that it was trained with:", wrong);
  const std::string probe = exp_avg_name(layout.places().front().parameter->name);
  check(!optimizer || reader.contains(probe), place,
        " has no state of the optimizer: give --no-load-optim to go on with a fresh one, or "
        "--finetune to start at iteration 0");
  const bool adam = rank.options().optimizer.kind != OptimizerKind::sgd;
  check(!optimizer ||
            reader.contains(exp_avg_sq_name(layout.places().front().parameter->name)) == adam,
        place,
        " was saved by another kind of optimizer; give the same "
        "--optimizer, or --no-load-optim");
}

void load_step_state(GptRank& rank, const CheckpointReader& reader) {
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
void load_choices(GptRank& rank, const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  rank.stream().device().service<MatmulChoices>().load(lines);
}

void load_part(GptRank& rank, const CheckpointReader& reader, const ShardPart& part,
               bool optimizer) {
  const FlatShard& shard = rank.optimizer().shards().front();
  load_tensor(rank, reader, part.name, part, shard.master);
  if (optimizer) {
    load_tensor(rank, reader, exp_avg_name(part.name), part, shard.moment1);
    if (shard.moment2) {
      load_tensor(rank, reader, exp_avg_sq_name(part.name), part, shard.moment2);
    }
  }
}

// Padding rows that cannot be taken over begin at their initial values, and the notes say so.
void load_padding(GptRank& rank, const CheckpointReader& reader, bool optimizer,
                  std::vector<std::string>& notes) {
  const std::vector<ShardPart> parts = padding_parts(rank);
  const auto is_padding = [](const std::string& name) { return name.ends_with(kPadding); };
  const bool stored = std::ranges::any_of(reader.names(), is_padding);
  // Of several tensor-parallel ranks only the last ones have such rows.
  bool same = rank.mesh().degree(Axis::tensor) > 1 || stored == !parts.empty();
  for (const ShardPart& part : parts) {
    if (reader.contains(part.name) && reader.tensor(part.name).shape == part.box.global) {
      load_part(rank, reader, part, optimizer);
    } else {
      same = false;
    }
  }
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

std::string choices_text(GptRank& rank) {
  std::string text;
  for (const std::string& line : rank.stream().device().service<MatmulChoices>().lines()) {
    text += line + "\n";
  }
  return text;
}

}  // namespace

LoadedProgress load_checkpoint(GptRank& rank, const CheckpointReader& reader, LoadScope scope) {
  const bool optimizer = scope == LoadScope::everything;
  check_fits(rank, reader, rank.layout(), optimizer);
  for (const ShardPart& part : shard_parts(rank)) {
    load_part(rank, reader, part, optimizer);
  }
  LoadedProgress loaded;
  load_padding(rank, reader, optimizer, loaded.notes);
  const FlatShard& shard = rank.optimizer().shards().front();
  if (shard.value) {
    launch(rank.stream(), ScaleAdd{.x = shard.master, .y = shard.value});
    rank.stream().synchronize();
  }
  if (scope == LoadScope::weights) {
    return {};
  }
  if (optimizer) {
    load_step_state(rank, reader);
  }
  load_choices(rank, reader.state().choices);
  loaded.progress = {reader.state().step, reader.state().consumed_samples};
  return loaded;
}

RunCheckpoints::RunCheckpoints(GptRank& rank, const CheckpointFlags& flags, const RunFacts& facts)
    : rank_(rank), flags_(flags), facts_(facts), stage_(rank.stream()) {
  // Data-parallel ranks hold the same: the first of them saves.
  Mesh& mesh = rank.mesh();
  group_ = mesh.world().split(mesh.coordinate(Axis::data), mesh.world().rank());
  if (mesh.coordinate(Axis::data) != 0) {
    return;
  }
  stream_ = std::make_unique<Stream>(rank.stream().device());
  const SaveOptions options{.asynchronous = !flags.synchronous,
                            .keep = {.last = flags.keep_last, .every = flags.keep_every},
                            .own_step = facts.own_step};
  writer_ = std::make_unique<CheckpointWriter>(
      flags.save, group_->size() == 1 ? single_rank_group() : communicator_group(*group_, *stream_),
      options);
  add_parameters();
  stage_.reserve();
}

RunCheckpoints::~RunCheckpoints() = default;

void RunCheckpoints::add_parameters() {
  const FlatShard& shard = rank_.optimizer().shards().front();
  std::vector<ShardPart> parts = shard_parts(rank_);
  std::ranges::move(padding_parts(rank_), std::back_inserter(parts));
  for (const ShardPart& part : parts) {
    const auto add = [&](const std::string& name, const Tensor& tensor) {
      stage_.add_range(name, tensor.dtype(), part.box, part.first, part.count,
                       tensor.range(part.at, {part.count}).data());
    };
    add(part.name, shard.master);
    if (!flags_.no_save_optim) {
      add(exp_avg_name(part.name), shard.moment1);
      if (shard.moment2) {
        add(exp_avg_sq_name(part.name), shard.moment2);
      }
    }
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
                 {kSchedule, to_json(facts_.schedule)}};
  set_model_record(state, facts_.model);
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
      snapshot.files = facts_.tokenizer_files;
      return snapshot;
    });
  }
}

std::optional<SaveOutcome> RunCheckpoints::poll() {
  return writer_ ? writer_->poll() : std::nullopt;
}

std::optional<SaveOutcome> RunCheckpoints::finish() {
  return writer_ ? writer_->finish() : std::nullopt;
}

}  // namespace bloomery
