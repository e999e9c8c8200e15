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

Ties::Ties(Mesh& mesh, const ParameterList& parameters)
    : stage_(mesh.coordinate(Axis::pipeline)), stages_(make_self_communicator()) {
  Communicator& pipeline = mesh.axis(Axis::pipeline);
  if (pipeline.size() == 1) {
    return;
  }
  std::set<int> tied;
  for (const auto& [name, stages] : holders_of(pipeline.host(), parameters)) {
    if (stages.size() > 1) {
      check(tied.empty() || tied == stages, "the weight ", name,
            " is shared by other stages than another shared weight; a model may share weights "
            "among one set of pipeline stages only");
      tied = stages;
      if (stages.contains(stage_)) {
        first_stage_[name] = *stages.begin();
      }
    }
  }
  if (!tied.empty()) {
    stages_ = pipeline.split(tied.contains(stage_) ? 0 : 1 + stage_, stage_);
  }
}

bool Ties::is_first_holder(const Parameter& parameter) const {
  const auto found = first_stage_.find(parameter.name);
  return found == first_stage_.end() || found->second == stage_;
}

}  // namespace bloomery
