// Weights that several stages of a pipeline hold, such as an embedding that is the output as well.
// They are known by their names, which are unique in a model: a parameter that two stages list is
// one weight, starts with the same numbers and, with its gradients summed over the stages, keeps
// them.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "autograd/parameter.h"
#include "comm/mesh.h"

namespace bloomery {

class Ties {
 public:
  // Collective over the pipeline axis.
  Ties(Mesh& mesh, const ParameterList& parameters);

  bool contains(const Parameter& parameter) const { return first_stage_.contains(parameter.name); }
  // Whether this stage is the first of those that hold the parameter: always, if it is not tied.
  bool is_first_holder(const Parameter& parameter) const;
  // The stages that hold tied weights, this one among them if it holds any.
  Communicator& stages() const { return *stages_; }

 private:
  int stage_;
  std::map<std::string, int> first_stage_;  // of the tied parameters of this stage, by name
  std::unique_ptr<Communicator> stages_;
};

}  // namespace bloomery
