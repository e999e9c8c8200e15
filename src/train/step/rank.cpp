#include "train/step/rank.h"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "comm/watch/recorded.h"
#include "device/op_clock.h"
#include "device/recorded.h"
#include "nn/token_dropping.h"
#include "ops/arithmetic/arithmetic.h"
#include "train/run/timers.h"
#include "train/step/stage_blocks.h"
#include "train/step/step_graphs.h"
#include "train/step/teacher.h"

namespace bloomery {
namespace {

constexpr std::int64_t kMostLosses = 12;
// Places in the statistics, behind the losses: ranks that want to stop, and ranks that have losses
// whose names the other stages do not know.
constexpr std::int64_t kStop = kMostLosses, kNewNames = kStop + 1, kNumStatistics = kNewNames + 1;
constexpr std::size_t kKeptTimes = 4;  // of steps whose outcome may be asked for

// Figures that layers report beside their losses have other names.
double sum_of_losses(const Rank::Losses& losses) {
  double sum = 0;
  for (const NamedLoss& each : losses) {
    sum += each.name.ends_with("loss") ? each.value : 0;
  }
  return sum;
}

Tensor device_one(Stream& stream, DType dtype) {
  return dtype == DType::fp64 ? Tensor::from_host<double>(stream, {1}, {1})
                              : Tensor::from_host<float>(stream, {1}, {1});
}

}  // namespace

Rank::Rank(const RankOptions& options, std::unique_ptr<Communicator> world)
    : options_(options),
      device_(std::make_unique<Device>(options.device)),
      stream_(std::make_unique<Stream>(*device_)),
      kept_(*stream_),
      kept_gradients_(*stream_),
      host_(options.offload.any() ? std::make_unique<HostSide>(*device_) : nullptr),
      mesh_(std::make_unique<Mesh>(options.layout.degrees, std::move(world))),
      recorder_(recorder_of(mesh_->world())) {
  if (!options.offload.folder.empty() && options.offload.optimizer_share > 0) {
    files_ = std::make_unique<StateFiles>(host_->stream(), options.offload.folder,
                                          options.offload.files);
  }
  std::vector<ParameterList> blocks;
  std::vector<const Model*> chunks;
  for (int chunk = 0; chunk < options.layout.chunks; ++chunk) {
    chunks_.push_back(
        std::make_unique<Model>(options.model, *mesh_, options.dtype,
                                chunk_blocks(options.model, *mesh_, options.layout, chunk)));
    const Model& model = *chunks_.back();
    chunks.push_back(&model);
    add_parameters_by_block(model, blocks);
    parameters_.insert(parameters_.end(), model.parameters().begin(), model.parameters().end());
  }
  quantize_base(blocks);
  ties_ = std::make_unique<Ties>(*mesh_, parameters_);
  make_streams();
  store_ = std::make_unique<ParameterStore>(*stream_, *mesh_, blocks, store_options(ties_.get()));
  initialize_values();
  if (quantized_) {
    quantized_->initialize(options.seed);
  }
  reducer_ = std::make_unique<Reducer>(*store_, *mesh_, *ties_, *stream_, reductions_.get(),
                                       kept_gradients_, options.replicas.reduce_dtype);
  optimizer_ = std::make_unique<Optimizer>(*stream_, options.optimizer, store_->shards(),
                                           state_copies_.get());
  prepare_offload();
  prepare_fp8();
  prepare_grids();
  if (options.teacher) {
    check_whole("a teacher");
    teacher_ = std::make_unique<Teacher>(*options.teacher, *chunks.front(), *stream_, *mesh_,
                                         store_options(nullptr));
  }
  tell_layers();
  executor_ = std::make_unique<Executor>(ExecutorParts{
      .stream = *stream_,
      .mesh = *mesh_,
      .store = *store_,
      .reducer = *reducer_,
      .chunks = std::move(chunks),
      .recompute = options.recompute,
      .context = [this](const Batch& batch, Tape* tape) { return context(batch, tape); }});
  graphs_ = make_step_graphs(options, mesh_->world().size(), *stream_);
  const DType dtype = accumulation_dtype(options.dtype);
  statistics_ = Tensor::zeros(*stream_, dtype, {kNumStatistics});
  one_ = device_one(*stream_, dtype);
  readback_ = std::make_unique<Readback>(*stream_, dtype, statistics_.numel());
}

Rank::~Rank() = default;

// Beside the rest only where that does not need the threads: on a GPU.
void Rank::initialize_values() {
  if (!options_.initialize_beside || !stream_->on_cuda() || quantized_) {
    return store_->initialize(options_.seed);
  }
  initial_values_ = std::async(std::launch::async, [this] {
    use_device(options_.device);
    store_->initialize(options_.seed);
  });
}

void Rank::await_initial_values() {
  if (initial_values_.valid()) {
    initial_values_.get();
  }
}

int Rank::put_weights_on_grids() {
  if (!grid_layers_) {
    return 0;
  }
  store_->settle();
  std::vector<ParameterStore::Part> parts = store_->parts();
  std::erase_if(parts, [](const ParameterStore::Part& part) { return part.is_padding; });
  std::vector<GridLayers::Numbers> numbers;
  for (const ParameterStore::Part& part : parts) {
    numbers.push_back({part.parameter, part.weights.numbers(*stream_), part.first});
  }
  const int bits = grid_layers_->put_on_grids(numbers, completed_steps_, options_.dtype);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].weights.set(*stream_, numbers[i].numbers);
  }
  store_->take_over_master();
  stream_->synchronize();
  return bits;
}

// Over all ranks of a stage, so that their scales are the same and no layout changes them.
void Rank::update_fp8_scales() {
  if (!fp8_ || !fp8_->has_scales()) {
    return;
  }
  const OpScope scope(*stream_, "fp8_scales", OpKind::optimizer);
  for (const AxisSet axes : {axis_bit(Axis::tensor), kReplicaAxes}) {
    mesh_->axes(axes).all_reduce(fp8_->amaxes(), Reduce::max, *stream_);
  }
  fp8_->update_scales(*stream_);
}

StoreOptions Rank::store_options(const Ties* ties) const {
  return {.dtype = options_.dtype,
          .grad_dtype = options_.replicas.grad_dtype,
          .sharded = options_.layout.sharded,
          .bucket_elements = options_.replicas.bucket_elements,
          .ties = ties,
          .gathers = gathers_.get(),
          .host = options_.offload.optimizer_share > 0 ? &host_->stream() : nullptr,
          .host_share = options_.offload.optimizer_share,
          .values_on_host = options_.offload.values,
          .files = files_.get()};
}

void Rank::check_whole(const char* what) const {
  check(mesh_->degree(Axis::pipeline) == 1, what,
        " beside the trained one stands whole, and cannot be cut into pipeline stages");
}

Context Rank::context(const Batch& batch, Tape* tape) {
  return Context{.stream = *stream_,
                 .mesh = *mesh_,
                 .batch = batch,
                 .tape = tape,
                 .seed = options_.seed,
                 .training = options_.training,
                 .access = store_->access(),
                 .communication = communication_.get(),
                 .kept = &kept_};
}

PipelineShape Rank::pipeline_shape(std::int64_t num_micro_batches) const {
  return {mesh_->degree(Axis::pipeline), num_micro_batches, options_.layout.chunks};
}

void Rank::clear_statistics() { stream_->fill(statistics_.data(), 0, statistics_.bytes()); }

// In the statistics of this rank.
std::int64_t Rank::place_of(const std::string& name) {
  const auto found = std::find(own_names_.begin(), own_names_.end(), name);
  const auto place = found - own_names_.begin();
  if (found == own_names_.end()) {
    check(place < kMostLosses, "a model may report ", kMostLosses, " losses at most");
    own_names_.push_back(name);
  }
  return place;
}

void Rank::add_losses(const Metrics& metrics, double factor) {
  for (const Metrics::Entry& entry : metrics.entries()) {
    const std::string name(entry.name);
    if (entry.beside) {
      names_beside_.insert(name);
    }
    launch(*stream_, ScaleAdd{.x = entry.value,
                              .y = statistics_.range(place_of(name), {1}),
                              .factor = static_cast<float>(factor * entry.factor),
                              .add = true});
  }
}

// The losses of one micro-batch, each `factor` of its mean.
void Rank::report(const Metrics& metrics, double factor) {
  if (teacher_) {
    teacher_->dismiss();
  }
  add_losses(metrics, factor);
}

void Rank::enqueue_gradients(std::int64_t num_micro_batches, const BatchSource& batch) {
  const std::int64_t parts = num_micro_batches * mesh_->degree(Axis::data);
  begin_ = last_end_ ? last_end_ : recorded(*stream_);
  begin_passes(num_micro_batches);
  clear_statistics();
  parts_ = parts;
  in_graphs_ = graphs_ && graphs_->wanted() && !executor_->observed();
  if (in_graphs_) {
    return run_in_graphs(num_micro_batches, batch, parts);
  }
  executor_->run(instructions(options_.layout.schedule, mesh_->coordinate(Axis::pipeline),
                              pipeline_shape(num_micro_batches)),
                 training_work(batch, optimizer_->grad_scale(parts), parts));
}

void Rank::begin_passes(std::int64_t num_micro_batches) {
  store_->begin_step(num_micro_batches);
  if (teacher_) {
    teacher_->begin_pass();
  }
  if (fp8_) {
    fp8_->begin_pass();
  }
  if (grid_layers_) {
    grid_layers_->begin_pass(completed_steps_, true);
  }
  device_->service<TokenDropping>().begin_step();
  if (options_.layer_drop) {
    LayerDropping& dropping = device_->service<LayerDropping>();
    dropping.theta = options_.layer_drop->theta_after(completed_steps_);
    dropping.step = completed_steps_;
    dropping.num_layers = options_.model.num_layers;
  }
}

void Rank::set_kept_tokens(std::int64_t kept) { device_->service<TokenDropping>().kept = kept; }

ExecutorWork Rank::training_work(const BatchSource& batch, const Tensor& grad_scale,
                                 std::int64_t parts) {
  ExecutorWork work{.batch = batch,
                    .grad_scale = grad_scale,
                    .training = true,
                    .report = [this, parts](const Batch&, const Metrics& metrics) {
                      report(metrics, 1 / static_cast<double>(parts));
                    }};
  if (teacher_ && taught_) {
    work.prepare = [this](const Batch& of) { teacher_->teach(context(of, nullptr)); };
  }
  return work;
}

void Rank::set_position(std::int64_t iteration, const char* work) {
  if (recorder_ != nullptr) {
    recorder_->set_iteration(iteration);
    recorder_->set_work(work);
  }
}

void Rank::set_work(const char* work) {
  if (recorder_ != nullptr) {
    recorder_->set_work(work);
  }
}

void Rank::enqueue_reduction() {
  set_work("sums of gradients");
  reduction_begin_ = recorded(*stream_);
  reducer_->finish_step();
  kept_.wait();
  hear_of_failures();
  reduction_end_ = recorded(*stream_);
}

// On a CPU: of the streams beside the computation. And of files.
void Rank::hear_of_failures() {
  if (files_) {
    optimizer_->on_host()->finish();
  }
  for (const auto& stream :
       {communication_.get(), gathers_.get(), state_copies_.get(), activation_copies_.get()}) {
    if (stream != nullptr && stream->queued()) {
      stream->synchronize();
    }
  }
}

// Losses differ between data-parallel ranks, are sums over those that cut a sequence, and of a
// pipeline each stage has some, or a part of their sum.
void Rank::sum_losses(const Tensor& statistics) {
  if (loss_names_ != own_names_) {
    const Tensor own = Tensor::empty(*stream_, statistics.dtype(), {kMostLosses});
    stream_->copy(own.data(), statistics.data(), own.bytes());
    stream_->fill(statistics.data(), 0, own.bytes());
    for (std::size_t i = 0; i < own_names_.size(); ++i) {
      const auto place = std::find(loss_names_.begin(), loss_names_.end(), own_names_[i]);
      if (place != loss_names_.end()) {
        launch(*stream_, ScaleAdd{.x = own.range(static_cast<std::int64_t>(i), {1}),
                                  .y = statistics.range(place - loss_names_.begin(), {1})});
      }
    }
  }
  mesh_->axes(axis_set(Axis::data, Axis::context, Axis::pipeline))
      .all_reduce(statistics.range(0, {kMostLosses}), Reduce::sum, *stream_);
}

void Rank::enqueue_update(std::int64_t schedule_units, bool stop) {
  set_work("optimizer");
  if (stop) {
    launch(*stream_, ScaleAdd{.x = one_, .y = statistics_.range(kStop, {1})});
  }
  if (mesh_->axis(Axis::pipeline).size() == 1 || num_updates_ == 0 || news_of_losses()) {
    learn_loss_names();
  }
  if (!knows_own_names()) {
    launch(*stream_, ScaleAdd{.x = one_, .y = statistics_.range(kNewNames, {1})});
  }
  sum_losses(statistics_);
  // Any rank may want to stop, or have news: over all axes.
  mesh_->world().all_reduce(statistics_.range(kStop, {kNumStatistics - kStop}), Reduce::sum,
                            *stream_);
  readback_->publish(statistics_);
  ++num_updates_;
  // The squared norm and, with it, overflow: over the axes along which the shards differ.
  Communicator* const groups[] = {&mesh_->axes(store_->norm_axes())};
  store_->settle();
  optimizer_->step(groups, schedule_units);
  store_->publish();
  update_fp8_scales();
  if (grid_layers_) {
    grid_layers_->end_step();
  }
  last_end_ = recorded(*stream_);
  times_.push_front({.begin = begin_,
                     .end = last_end_,
                     .reduction_begin = reduction_begin_,
                     .reduction_end = reduction_end_,
                     .kind = in_graphs_ ? graphs_->end_step() : GraphTrial::Step::other,
                     .parts = parts_});
  times_.resize(std::min(times_.size(), kKeptTimes));
}

// Whether a stage reported a loss that the others do not know. A step is looked at two steps later,
// the same one on all ranks, when nobody has to wait for the device to hear of it.
bool Rank::news_of_losses() const { return num_updates_ >= 2 && readback_->read(1)[kNewNames] > 0; }

bool Rank::knows_own_names() const {
  return std::ranges::all_of(own_names_, [this](const std::string& name) {
    return std::ranges::find(loss_names_, name) != loss_names_.end();
  });
}

// The stages of a pipeline tell each other. Losses come first, those of the last stage before all;
// what is reported later comes behind what is known.
void Rank::learn_loss_names() {
  Communicator& pipeline = mesh_->axis(Axis::pipeline);
  if (pipeline.size() == 1) {
    loss_names_ = own_names_;
    return;
  }
  std::string names;
  for (const std::string& name : own_names_) {
    names += (names_beside_.contains(name) ? "1" : "0") + name + '\n';
  }
  const std::vector<std::string> all = pipeline.host().gather("names of losses", names);
  for (const char beside : {'0', '1'}) {
    for (auto stage = all.rbegin(); stage != all.rend(); ++stage) {
      std::istringstream lines(*stage);
      for (std::string line; std::getline(lines, line);) {
        const std::string name = line.substr(1);
        if (line.front() == beside && std::ranges::find(loss_names_, name) == loss_names_.end()) {
          loss_names_.push_back(name);
        }
      }
    }
  }
  check(loss_names_.size() <= kMostLosses, "a model may report ", kMostLosses, " losses at most");
}

Rank::Losses Rank::named(const std::vector<double>& numbers) const {
  Losses losses;
  for (std::size_t i = 0; i < loss_names_.size(); ++i) {
    losses.push_back({loss_names_[i], numbers[i]});
  }
  return losses;
}

Rank::Outcome Rank::outcome(int age) const {
  const std::vector<double> numbers = readback_->read(age);
  Losses losses = named(numbers);
  if (teacher_) {
    losses.insert(losses.begin(), {"total loss", sum_of_losses(losses)});
  }
  const StepTime& time = times_.at(static_cast<std::size_t>(age));
  time.end->synchronize();
  return {
      .loss = losses.front().value,
      .losses = losses,
      .stop = numbers[kStop] > 0,
      .update = optimizer_->report(age),
      .seconds = time.end->seconds_since(*time.begin),
      .waited = time.reduction_end ? time.reduction_end->seconds_since(*time.reduction_begin) : 0};
}

Rank::Losses Rank::mean_losses() {
  learn_loss_names();
  const Tensor sums = Tensor::empty(*stream_, statistics_.dtype(), statistics_.shape());
  stream_->copy(sums.data(), statistics_.data(), sums.bytes());
  sum_losses(sums);
  Readback result(*stream_, sums.dtype(), sums.numel());
  result.publish(sums);
  return named(result.read(0));
}

double Rank::accumulate(std::span<const HostBatch> micro_batches) {
  enqueue_gradients(static_cast<std::int64_t>(micro_batches.size()), [&](std::int64_t m) {
    return upload(micro_batches[static_cast<std::size_t>(m)], *stream_);
  });
  enqueue_reduction();
  return mean_losses().front().value;
}

Rank::Result Rank::step(std::span<const HostBatch> micro_batches) {
  Result result;
  result.loss = accumulate(micro_batches);
  std::int64_t num_samples = 0;
  for (const HostBatch& batch : micro_batches) {
    num_samples += batch.num_samples();
  }
  enqueue_update(num_samples);
  result.grad_norm = optimizer_->report(0).grad_norm;
  return result;
}

}  // namespace bloomery
