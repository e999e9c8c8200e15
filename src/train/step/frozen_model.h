// A model beside the trained one that is never updated: its parameters have values only.
#pragma once

#include <memory>

#include "models/model.h"
#include "zero/parameter_store.h"

namespace bloomery {

// The parameters by block, as a store takes them.
void add_parameters_by_block(const Model& model, std::vector<ParameterList>& all);

struct FrozenModel {
  // Stream and mesh must outlive it.
  FrozenModel(const ModelOptions& options, Stream& stream, Mesh& mesh,
              const StoreOptions& store_options);

  Model model;
  std::unique_ptr<ParameterStore> store;
};

}  // namespace bloomery
