#include "train/step/frozen_model.h"

namespace bloomery {

void add_parameters_by_block(const Model& model, std::vector<ParameterList>& all) {
  for (const auto& block : model.blocks()) {
    block->collect(all.emplace_back());
  }
}

FrozenModel::FrozenModel(const ModelOptions& options, Stream& stream, Mesh& mesh,
                         const StoreOptions& store_options)
    : model(options, mesh, store_options.dtype) {
  for (Parameter* parameter : model.parameters()) {
    parameter->frozen = true;
  }
  std::vector<ParameterList> blocks;
  add_parameters_by_block(model, blocks);
  store = std::make_unique<ParameterStore>(stream, mesh, blocks, store_options);
}

}  // namespace bloomery
