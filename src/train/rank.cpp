#include "train/rank.h"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "autograd/remake.h"
#include "comm/watch/recorded.h"
#include "device/op_clock.h"
#include "device/recorded.h"
#include "ops/arithmetic/arithmetic.h"
#include "train/timers.h"

namespace bloomery {
namespace {

constexpr std::int64_t kMostLosses = 8;
constexpr std::int64_t kStop = kMostLosses;  // place in the statistics
constexpr std::size_t kKeptTimes = 4;        // of steps whose outcome may be asked for

// A chunk of a stage has an equal share of the layers; embedding and head go with the first and the
// last of all.
BlockRange chunk_blocks(const ModelOptions& options, const Mesh& mesh, int chunk, int num_chunks) {
  const int stages = mesh.degree(Axis::pipeline);
  const int part = chunk * stages + mesh.coordinate(Axis::pipeline), parts = stages * num_chunks;
  const int blocks = Model::num_blocks(options), layers = blocks - 2;
  check(parts == 1 || parts <= layers, parts, " parts of a pipeline need as many layers, not ",
        layers);
  const auto share = [&](int p) { return 1 + layers * p / parts; };
  return {part == 0 ? 0 : share(part), part == parts - 1 ? blocks : share(part + 1)};
}

void add_parameters_by_block(const Model& model, std::vector<ParameterList>& all) {
  for (const auto& block : model.blocks()) {
    block->collect(all.emplace_back());
  }
}

// The weights of the linear layers in blocks: of the parameters there, those that decay.
ParameterList weights_in_layers(const Model& model) {
  ParameterList weights;
  for (const auto& block : model.blocks()) {
    ParameterList all;
    if (block->is_layer()) {
      block->collect(all);
    }
    std::copy_if(all.begin(), all.end(), std::back_inserter(weights),
                 [](const Parameter* each) { return each->decay && each->box.global.rank() >= 2; });
  }
  return weights;
}

Tensor device_one(Stream& stream, DType dtype) {
  return dtype == DType::fp64 ? Tensor::from_host<double>(stream, {1}, {1})
                              : Tensor::from_host<float>(stream, {1}, {1});
}

}  // namespace

struct Rank::FrozenModel {
  FrozenModel(std::string prefix, const ModelOptions& options, Rank& rank)
      : name(std::move(prefix)), model(options, *rank.mesh_, rank.options_.dtype) {
    for (Parameter* parameter : model.parameters()) {
      parameter->frozen = true;
    }
    std::vector<ParameterList> blocks;
    add_parameters_by_block(model, blocks);
    store = std::make_unique<ParameterStore>(*rank.stream_, *rank.mesh_, blocks,
                                             rank.store_options(nullptr));
  }
  std::string name;
  Model model;
  std::unique_ptr<ParameterStore> store;
};

Rank::Rank(const RankOptions& options, std::unique_ptr<Communicator> world)
    : options_(options),
      device_(std::make_unique<Device>(options.device)),
      stream_(std::make_unique<Stream>(*device_)),
      kept_(*stream_),
      kept_gradients_(*stream_),
      mesh_(std::make_unique<Mesh>(options.layout.degrees, std::move(world))),
      recorder_(recorder_of(mesh_->world())) {
  std::vector<ParameterList> blocks;
  std::vector<const Model*> chunks;
  for (int chunk = 0; chunk < options.layout.chunks; ++chunk) {
    chunks_.push_back(
        std::make_unique<Model>(options.model, *mesh_, options.dtype,
                                chunk_blocks(options.model, *mesh_, chunk, options.layout.chunks)));
    const Model& model = *chunks_.back();
    chunks.push_back(&model);
    add_parameters_by_block(model, blocks);
    parameters_.insert(parameters_.end(), model.parameters().begin(), model.parameters().end());
  }
  ties_ = std::make_unique<Ties>(*mesh_, parameters_);
  if (options.replicas.overlap_gathers && options.layout.sharded.optimizer &&
      mesh_->size(kReplicaAxes) > 1) {
    gathers_ = std::make_unique<Stream>(*device_, StreamMode::queued);
  }
  store_ = std::make_unique<ParameterStore>(*stream_, *mesh_, blocks, store_options(ties_.get()));
  store_->initialize(options.seed);
  if (mesh_->degree(Axis::tensor) > 1) {
    communication_ = std::make_unique<Stream>(*device_, StreamMode::queued);
  }
  if (options.replicas.overlap_reductions &&
      (mesh_->size(kReplicaAxes) > 1 || ties_->stages().size() > 1 || mesh_->divides_tokens())) {
    reductions_ = std::make_unique<Stream>(*device_, StreamMode::queued);
  }
  reducer_ = std::make_unique<Reducer>(*store_, *mesh_, *ties_, *stream_, reductions_.get(),
                                       kept_gradients_, options.replicas.reduce_dtype);
  device_->service<KeepPolicy>().remake_cheap_values = options.recompute.cheap_values;
  optimizer_ = std::make_unique<Optimizer>(*stream_, options.optimizer, store_->shards());
  prepare_fp8();
  executor_ = std::make_unique<Executor>(ExecutorParts{
      .stream = *stream_,
      .mesh = *mesh_,
      .store = *store_,
      .reducer = *reducer_,
      .chunks = std::move(chunks),
      .recompute = options.recompute,
      .context = [this](const Batch& batch, Tape* tape) { return context(batch, tape); }});
  const DType dtype = accumulation_dtype(options.dtype);
  statistics_ = Tensor::zeros(*stream_, dtype, {kMostLosses + 1});
  one_ = device_one(*stream_, dtype);
  readback_ = std::make_unique<Readback>(*stream_, dtype, statistics_.numel());
}

Rank::~Rank() = default;

void Rank::prepare_fp8() {
  if (!options_.fp8) {
    return;
  }
  check(options_.dtype == DType::bf16, "fp8 goes with bf16, not with ", options_.dtype);
  ParameterList weights;
  for (const auto& chunk : chunks_) {
    const ParameterList more = weights_in_layers(*chunk);
    weights.insert(weights.end(), more.begin(), more.end());
  }
  fp8_ = std::make_unique<Fp8Layers>(*stream_, *options_.fp8, weights, !store_->sharded().values);
  device_->service<Fp8LayersInUse>().layers = fp8_.get();
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
          .sharded = options_.layout.sharded,
          .bucket_elements = options_.replicas.bucket_elements,
          .ties = ties,
          .gathers = gathers_.get()};
}

const Model& Rank::add_frozen(const std::string& name, const ModelOptions& options,
                              std::uint64_t seed) {
  check(mesh_->degree(Axis::pipeline) == 1,
        "a frozen model beside the trained one cannot be cut "
        "into pipeline stages yet");
  frozen_.push_back(std::make_unique<FrozenModel>(name, options, *this));
  frozen_.back()->store->initialize(seed);
  return frozen_.back()->model;
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

void Rank::add_losses(const std::string& prefix, const Metrics& metrics, double factor) {
  for (const Metrics::Entry& entry : metrics.entries()) {
    const std::size_t place = num_reported_++;
    check(place < kMostLosses, "a model may report ", kMostLosses, " losses at most");
    if (place == loss_names_.size()) {
      loss_names_.push_back(prefix + std::string(entry.name));
    }
    launch(*stream_, ScaleAdd{.x = entry.value,
                              .y = statistics_.range(static_cast<std::int64_t>(place), {1}),
                              .factor = static_cast<float>(factor),
                              .add = true});
  }
}

// The losses of one micro-batch, each `factor` of its mean.
void Rank::report(const Batch& batch, const Metrics& metrics, double factor) {
  num_reported_ = 0;
  add_losses("", metrics, factor);
  for (const auto& frozen : frozen_) {
    Context forward = context(batch, nullptr);
    forward.training = false;
    forward.access = frozen->store->access();
    Metrics own;
    forward.metrics = &own;
    frozen->model.forward(forward);
    add_losses(frozen->name + " ", own, factor);
  }
}

void Rank::enqueue_gradients(std::int64_t num_micro_batches, const BatchSource& batch) {
  const std::int64_t parts = num_micro_batches * mesh_->degree(Axis::data);
  begin_ = last_end_ ? last_end_ : recorded(*stream_);
  store_->begin_step(num_micro_batches);
  for (const auto& frozen : frozen_) {
    frozen->store->begin_pass(Pass::training);
  }
  if (fp8_) {
    fp8_->begin_pass();
  }
  clear_statistics();
  executor_->run(instructions(options_.layout.schedule, mesh_->coordinate(Axis::pipeline),
                              pipeline_shape(num_micro_batches)),
                 {.batch = batch,
                  .grad_scale = optimizer_->grad_scale(parts),
                  .training = true,
                  .report = [&](const Batch& of, const Metrics& metrics) {
                    report(of, metrics, 1 / static_cast<double>(parts));
                  }});
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

// On a CPU: of the streams beside the computation.
void Rank::hear_of_failures() {
  for (const auto& stream : {communication_.get(), gathers_.get()}) {
    if (stream != nullptr && stream->queued()) {
      stream->synchronize();
    }
  }
}

// Losses differ between data-parallel ranks, are sums over those that cut a sequence, and of a
// pipeline only the last stage has them.
void Rank::sum_losses(const Tensor& statistics) {
  mesh_->axes(axis_set(Axis::data, Axis::context, Axis::pipeline))
      .all_reduce(statistics.range(0, {kMostLosses}), Reduce::sum, *stream_);
}

void Rank::enqueue_update(std::int64_t schedule_units, bool stop) {
  set_work("optimizer");
  if (stop) {
    launch(*stream_, ScaleAdd{.x = one_, .y = statistics_.range(kStop, {1})});
  }
  learn_loss_names();
  sum_losses(statistics_);
  // Any rank may want to stop: over all axes.
  mesh_->world().all_reduce(statistics_.range(kStop, {1}), Reduce::sum, *stream_);
  readback_->publish(statistics_);
  // The squared norm and, with it, overflow: over the axes along which the shards differ.
  Communicator* const groups[] = {&mesh_->axes(store_->norm_axes())};
  store_->settle();
  optimizer_->step(groups, schedule_units);
  store_->publish();
  update_fp8_scales();
  last_end_ = recorded(*stream_);
  times_.push_front({begin_, last_end_, reduction_begin_, reduction_end_});
  times_.resize(std::min(times_.size(), kKeptTimes));
}

// The last stage of a pipeline tells the others, once.
void Rank::learn_loss_names() {
  Communicator& pipeline = mesh_->axis(Axis::pipeline);
  if (std::exchange(knows_loss_names_, true) || pipeline.size() == 1) {
    return;
  }
  std::string names;
  for (const std::string& name : loss_names_) {
    names += name + '\n';
  }
  std::istringstream lines(
      pipeline.host().broadcast("names of losses", names, pipeline.size() - 1));
  loss_names_.clear();
  for (std::string name; std::getline(lines, name);) {
    loss_names_.push_back(name);
  }
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
  const StepTime& time = times_.at(static_cast<std::size_t>(age));
  time.end->synchronize();
  return {
      .loss = numbers[0],
      .losses = named(numbers),
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

Rank::Losses Rank::evaluate(std::int64_t num_micro_batches, const BatchSource& batch) {
  const std::int64_t parts = num_micro_batches * mesh_->degree(Axis::data);
  store_->begin_pass(Pass::evaluation);
  for (const auto& frozen : frozen_) {
    frozen->store->begin_pass(Pass::evaluation);
  }
  if (fp8_) {
    fp8_->begin_pass();
  }
  clear_statistics();
  executor_->run(forward_only(mesh_->coordinate(Axis::pipeline), pipeline_shape(num_micro_batches)),
                 {.batch = batch,
                  .grad_scale = {},
                  .training = false,
                  .report = [&](const Batch& of, const Metrics& metrics) {
                    report(of, metrics, 1 / static_cast<double>(parts));
                  }});
  hear_of_failures();
  return mean_losses();
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
