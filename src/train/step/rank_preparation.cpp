// What a rank has beside its model and parameters, where the options ask for it.
#include <algorithm>
#include <iterator>

#include "autograd/inputs_on_host.h"
#include "autograd/remake.h"
#include "models/linear_weights.h"
#include "nn/token_dropping.h"
#include "parallel/preference.h"
#include "parallel/sequence_chunks.h"
#include "train/step/rank.h"

namespace bloomery {

// Those that work beside the computation, where there is something to do.
void Rank::make_streams() {
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

// Frozen weights that are held in fewer bits are no part of the store.
void Rank::quantize_base(std::vector<ParameterList>& blocks) {
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
  device_->service<QuantizedWeightsInUse>().weights = quantized_.get();
  for (ParameterList& block : blocks) {
    std::erase_if(block, [&](const Parameter* each) { return quantized_->find(*each) != nullptr; });
  }
}

// What layers find by themselves.
void Rank::tell_layers() {
  device_->service<KeepPolicy>().remake_cheap_values = options_.recompute.cheap_values;
  device_->service<PreferenceInUse>().options = options_.preference;
  device_->service<TokenDropping>().layers = options_.token_dropping_layers;
  device_->service<SequenceChunks>().length = options_.sequence_chunk;
}

void Rank::prepare_offload() {
  if (HostUpdate* const update = optimizer_->on_host()) {
    store_->await_update = [update](std::size_t bucket) { update->await(bucket); };
    reducer_->on_final = [update](std::size_t bucket, Stream& stream) {
      update->fetch_gradients(bucket, stream);
    };
  }
  if (options_.offload.activations) {
    device_->service<InputsOnHost>().begin(*stream_, host_->stream(), *activation_copies_);
  }
  if (options_.offload.keys) {
    device_->service<SequenceChunks>().shelf =
        std::make_unique<HostShelf>(*stream_, host_->stream(), *activation_copies_);
  }
}

void Rank::prepare_fp8() {
  if (!options_.fp8) {
    return;
  }
  check(options_.dtype == DType::bf16, "fp8 goes with bf16, not with ", options_.dtype);
  fp8_ = std::make_unique<Fp8Layers>(*stream_, *options_.fp8, weights_in_layers(),
                                     !store_->sharded().values);
  device_->service<Fp8LayersInUse>().layers = fp8_.get();
}

void Rank::prepare_grids() {
  if (options_.grids.empty()) {
    return;
  }
  grid_layers_ = std::make_unique<GridLayers>(*stream_, *mesh_, options_.grids, weights_in_layers(),
                                              !store_->sharded().values);
  device_->service<GridLayersInUse>().layers = grid_layers_.get();
}

// Of the parameters in blocks, the matrices that decay.
ParameterList Rank::weights_in_layers() const {
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

}  // namespace bloomery
