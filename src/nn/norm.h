// The norm in front of a branch: adds the pending branch to the stream and normalises, in one pass.
#pragma once

#include "autograd/context.h"
#include "comm/mesh.h"
#include "ops/linear/linear.h"
#include "ops/norm/norm.h"

namespace bloomery {

// Of the branch that the state has not added yet.
DropoutOptions pending_dropout(const Context& context, const State& state);

class Norm {
 public:
  Norm(const std::string& name, std::int64_t hidden, const NormOptions& options, const Mesh& mesh);

  // state.stream takes in state.pending; the normalised stream is returned.
  LinearInput operator()(Context& context, State& state) const;
  void collect(ParameterList& parameters) const;

 private:
  NormOptions options_;
  std::unique_ptr<Parameter> gain_, bias_;  // no bias for RMS norm
};

}  // namespace bloomery
