#include "nn/head.h"

namespace bloomery {

Head::Head(std::int64_t hidden, const NormOptions& norm, std::shared_ptr<Parameter> weight,
           const HeadOptions& options)
    : norm_("final_norm", hidden, norm), weight_(std::move(weight)), options_(options) {}

HeadLoss Head::loss(Context& context, State state) const {
  return head_loss(context, norm_(context, state), *weight_, options_);
}

Value Head::logits(Context& context, State state) const {
  return head_logits(context, norm_(context, state), *weight_, options_);
}

void Head::collect(ParameterList& parameters) const {
  norm_.collect(parameters);
  parameters.push_back(weight_.get());
}

}  // namespace bloomery
