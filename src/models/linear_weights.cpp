#include "models/linear_weights.h"

#include <set>

#include "nn/adapter.h"

namespace bloomery {

// The same model with all adapters names them.
ParameterList linear_weights(const Model& model) {
  ModelOptions options = model.options();
  options.adapter = {.enabled = true, .targets = {"*"}};
  const Mesh alone = Mesh::single();
  const Model adapted(options, alone, model.dtype());
  std::set<std::string> names;
  for (const Parameter* each : adapted.parameters()) {
    if (each->name.ends_with(kFirstFactor)) {
      names.insert(each->name.substr(0, each->name.size() - kFirstFactor.size()) + ".weight");
    }
  }
  ParameterList weights;
  for (Parameter* parameter : model.parameters()) {
    if (names.contains(parameter->name)) {
      weights.push_back(parameter);
    }
  }
  return weights;
}

}  // namespace bloomery
