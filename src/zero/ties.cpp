#include "zero/ties.h"

#include <set>
#include <sstream>

namespace bloomery {
namespace {

using Holders = std::map<std::string, std::set<int>>;  // stages by the name of a parameter

Holders holders_of(HostGroup& stages, const ParameterList& parameters) {
  std::string mine;
  for (const Parameter* parameter : parameters) {
    mine += parameter->name + '\n';
  }
  Holders holders;
  const std::vector<std::string> all = stages.gather("names of parameters", mine);
  for (std::size_t stage = 0; stage < all.size(); ++stage) {
    std::istringstream lines(all[stage]);
    for (std::string name; std::getline(lines, name);) {
      holders[name].insert(static_cast<int>(stage));
    }
  }
  return holders;
}

}  // namespace

Ties::Ties(Mesh& mesh, const ParameterList& parameters) : stage_(mesh.coordinate(Axis::pipeline)) {
  Communicator& pipeline = mesh.axis(Axis::pipeline);
  if (pipeline.size() == 1 || pipeline.abstract()) {
    return;  // nobody knows what stages that do not exist hold
  }
  std::map<std::set<int>, std::shared_ptr<Communicator>> groups;
  int number = 0;
  for (const auto& [name, stages] : holders_of(pipeline.host(), parameters)) {
    if (stages.size() == 1) {
      continue;
    }
    ++number;
    const bool holds = stages.contains(stage_);
    std::shared_ptr<Communicator>& group = groups[stages];
    if (!group) {  // by all stages, though it is of use to those that hold the weight
      group = pipeline.split(holds ? 0 : 1 + stage_, stage_);
    }
    if (holds) {
      numbers_[name] = number;
      weights_[number] = {*stages.begin(), group};
    }
  }
}

int Ties::number(const Parameter& parameter) const {
  const auto found = numbers_.find(parameter.name);
  return found == numbers_.end() ? 0 : found->second;
}

bool Ties::is_first_holder(const Parameter& parameter) const {
  const int of = number(parameter);
  return of == 0 || weights_.at(of).first_stage == stage_;
}

std::vector<int> Ties::numbers() const {
  std::vector<int> all;
  for (const auto& [number, weight] : weights_) {
    all.push_back(number);
  }
  return all;
}

}  // namespace bloomery
