#include "train/step/stage.h"

#include <algorithm>
#include <iterator>

#include "models/linear_weights.h"
#include "train/step/frozen_model.h"
#include "train/step/stage_blocks.h"
#include "train/step/teacher.h"

namespace bloomery {

Stage::Stage(const RankOptions& options, std::unique_ptr<Communicator> world)
    : options_(options),
      device_(std::make_unique<Device>(options.device)),
      stream_(std::make_unique<Stream>(*device_)),
      kept_(*stream_),
      kept_gradients_(*stream_),
      host_(options.offload.any() ? std::make_unique<HostSide>(*device_) : nullptr),
      mesh_(std::make_unique<Mesh>(options.layout.degrees, std::move(world))) {
  if (options.offload.state() == Placement::file) {
    files_ = std::make_unique<StateFiles>(host_->stream(), options.offload.folder,
                                          options.offload.files);
  }
  if (options.offload.values_at() == Placement::file) {
    value_files_ = std::make_unique<StateFiles>(host_->stream(), options.offload.values_folder,
                                                options.offload.files);
  }
  make_chunks();
  std::vector<ParameterList> blocks;
  for (const auto& chunk : chunks_) {
    add_parameters_by_block(*chunk, blocks);
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
  features_ = std::make_unique<StageFeatures>(
      options_, *stream_, *mesh_, weights_in_layers(), !store_->sharded().values,
      StageFeatures::HostCopies{host_ ? &host_->stream() : nullptr, activation_copies_.get()});
  if (options.teacher) {
    check(mesh_->degree(Axis::pipeline) == 1,
          "a teacher beside the trained model stands whole, and cannot be cut into pipeline "
          "stages");
    teacher_ = std::make_unique<Teacher>(*options.teacher, *chunks_.front(), *stream_, *mesh_,
                                         store_options(nullptr));
  }
}

Stage::~Stage() = default;

void Stage::make_chunks() {
  for (int chunk = 0; chunk < options_.layout.chunks; ++chunk) {
    chunks_.push_back(
        std::make_unique<Model>(options_.model, *mesh_, options_.dtype,
                                chunk_blocks(options_.model, *mesh_, options_.layout, chunk)));
    const ParameterList& more = chunks_.back()->parameters();
    parameters_.insert(parameters_.end(), more.begin(), more.end());
  }
}

// Those that work beside the computation, where there is something to do.
void Stage::make_streams() {
  const auto queued = [this] { return std::make_unique<Stream>(*device_, StreamMode::queued); };
  const bool has_replicas = mesh_->size(kReplicaAxes) > 1;
  if (options_.replicas.overlap_gathers && options_.layout.sharded.optimizer &&
      (has_replicas || options_.offload.values)) {
    gathers_ = queued();
  }
  if (mesh_->degree(Axis::tensor) > 1) {
    communication_ = queued();
  }
  if (options_.replicas.overlap_reductions &&
      (has_replicas || !ties_->numbers().empty() || mesh_->divides_tokens())) {
    reductions_ = queued();
  }
  if (options_.offload.optimizer_share > 0) {
    state_copies_ = queued();
  }
  if (options_.offload.activations || options_.offload.keys) {
    activation_copies_ = queued();
  }
}

// Beside the rest only where that does not need the threads: on a GPU.
void Stage::initialize_values() {
  if (!options_.initialize_beside || !stream_->on_cuda() || quantized_) {
    return store_->initialize(options_.seed);
  }
  initial_values_ = std::async(std::launch::async, [this] {
    use_device(options_.device);
    store_->initialize(options_.seed);
  });
}

void Stage::await_initial_values() {
  if (initial_values_.valid()) {
    initial_values_.get();
  }
}

// Frozen weights that are held in fewer bits are no part of the store.
void Stage::quantize_base(std::vector<ParameterList>& blocks) {
  if (options_.quantized_base == QuantizedFormat::none) {
    return;
  }
  check(!options_.layout.sharded.values || mesh_->size(kReplicaAxes) == 1,
        "weights in fewer bits are whole on every rank, and cannot be sharded (ZeRO stage 3)");
  ParameterList weights;
  for (const auto& chunk : chunks_) {
    std::ranges::copy_if(linear_weights(*chunk), std::back_inserter(weights),
                         [](const Parameter* each) { return each->frozen; });
  }
  quantized_ = std::make_unique<QuantizedWeights>(*stream_, options_.quantized_base, options_.dtype,
                                                  weights);
  for (ParameterList& block : blocks) {
    std::erase_if(block, [](const Parameter* each) { return each->codes != nullptr; });
  }
}

void Stage::prepare_offload() {
  if (HostUpdate* const update = optimizer_->on_host()) {
    store_->await_update = [update](std::size_t bucket) { update->await(bucket); };
    reducer_->on_final = [update](std::size_t bucket, Stream& stream) {
      update->fetch_gradients(bucket, stream);
    };
  }
}

// Of the parameters in blocks, the matrices that decay.
ParameterList Stage::weights_in_layers() const {
  ParameterList weights;
  for (const auto& chunk : chunks_) {
    for (const auto& block : chunk->blocks()) {
      ParameterList all;
      if (block->is_layer()) {
        block->collect(all);
      }
      std::ranges::copy_if(all, std::back_inserter(weights), [](const Parameter* each) {
        return each->decay && each->box.global.rank() >= 2;
      });
    }
  }
  return weights;
}

StoreOptions Stage::store_options(const Ties* ties) const {
  return {.dtype = options_.dtype,
          .grad_dtype = options_.replicas.grad_dtype,
          .sharded = options_.layout.sharded,
          .bucket_elements = options_.replicas.bucket_elements,
          .ties = ties,
          .gathers = gathers_.get(),
          .state = options_.offload.state(),
          .host_share = options_.offload.optimizer_share,
          .values = options_.offload.values_at(),
          .host = host_ ? &host_->stream() : nullptr,
          .files = files_.get(),
          .value_files = value_files_.get()};
}

Context Stage::context(const Batch& batch, const Features& features, Tape* tape, bool training) {
  return Context{.stream = *stream_,
                 .mesh = *mesh_,
                 .batch = batch,
                 .features = features,
                 .tape = tape,
                 .seed = options_.seed,
                 .training = training && options_.training,
                 .access = store_->access(),
                 .communication = communication_.get(),
                 .kept = &kept_};
}

void Stage::finish_passes() {
  kept_.wait();
  hear_of_failures();
}

void Stage::hear_of_failures() {
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

int put_weights_on_grids(Stage& stage, std::int64_t completed_steps) {
  FakeQuantLayers* const grids = stage.features().fake_quant_layers();
  if (grids == nullptr) {
    return 0;
  }
  ParameterStore& store = stage.store();
  store.wait_gathers();
  std::vector<ParameterStore::Part> parts = store.parts();
  std::erase_if(parts, [](const ParameterStore::Part& part) { return part.is_padding; });
  std::vector<FakeQuantLayers::Numbers> numbers;
  for (const ParameterStore::Part& part : parts) {
    numbers.push_back({part.parameter, part.weights.numbers(stage.stream()), part.first});
  }
  const int bits = grids->bake_quantization(numbers, completed_steps, stage.options().dtype);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].weights.set(stage.stream(), numbers[i].numbers);
  }
  store.refresh_from_master();
  stage.stream().synchronize();
  return bits;
}

}  // namespace bloomery
