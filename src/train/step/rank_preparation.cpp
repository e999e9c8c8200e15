// What a rank has beside its model and parameters, where the options ask for it.
#include <algorithm>
#include <iterator>

#include "models/linear_weights.h"
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
  for (ParameterList& block : blocks) {
    std::erase_if(block, [&](const Parameter* each) { return quantized_->find(*each) != nullptr; });
  }
}

void Rank::switch_features_on() {
  token_dropping_.layers = options_.token_dropping_layers;
  sequence_chunks_.length = options_.sequence_chunk;
  features_ = {
      .activations = {.remake_cheap_values = options_.recompute.cheap_values},
      .fp8 = fp8_.get(),
      .fake_quantization = grid_layers_.get(),
      .token_dropping = token_dropping_.layers.empty() ? nullptr : &token_dropping_,
      .layer_dropping = options_.layer_drop ? &layer_dropping_ : nullptr,
      .sequence_chunks = sequence_chunks_.length > 0 ? &sequence_chunks_ : nullptr,
      .inputs_on_host = inputs_on_host_.get(),
      .preference = options_.preference ? &*options_.preference : nullptr,
  };
}

void Rank::prepare_offload() {
  if (HostUpdate* const update = optimizer_->on_host()) {
    store_->await_update = [update](std::size_t bucket) { update->await(bucket); };
    reducer_->on_final = [update](std::size_t bucket, Stream& stream) {
      update->fetch_gradients(bucket, stream);
    };
  }
  if (options_.offload.activations) {
    inputs_on_host_ =
        std::make_unique<InputsOnHost>(*stream_, host_->stream(), *activation_copies_);
  }
  if (options_.offload.keys) {
    sequence_chunks_.shelf =
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
}

void Rank::prepare_grids() {
  if (options_.grids.empty()) {
    return;
  }
  grid_layers_ = std::make_unique<GridLayers>(*stream_, *mesh_, options_.grids, weights_in_layers(),
                                              !store_->sharded().values);
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
