// Weights that several stages of a pipeline hold, such as an embedding that is the output as well,
// or that an encoder and a decoder share. They are known by their names, which are unique in a
// model: a parameter that two stages list is one weight, starts with the same numbers and, with its
// gradients summed over the stages, keeps them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "comm/mesh.h"

namespace bloomery {

class Ties {
 public:
  // Collective over the pipeline axis.
  Ties(Mesh& mesh, const ParameterList& parameters);

  // The number of a weight among all that several stages hold, the same on each of them; 0: one
  // stage has it alone. Who sums several weights does so in the order of their numbers: so no two
  // stages wait for each other.
  int number(const Parameter& parameter) const;
  // Whether this stage is the first of those that hold the parameter: always, if it is not tied.
  bool is_first_holder(const Parameter& parameter) const;
  // The stages that hold the weight of a number, this one among them.
  Communicator& stages(int number) const { return *weights_.at(number).stages; }
  // Numbers of the weights that this stage shares, in order.
  std::vector<int> numbers() const;

 private:
  struct Weight {
    int first_stage = 0;
    std::shared_ptr<Communicator> stages;  // one for all weights of the same stages
  };
  int stage_;
  std::map<std::string, int> numbers_;  // of this stage's shared weights, by name
  std::map<int, Weight> weights_;       // by number
};

}  // namespace bloomery
