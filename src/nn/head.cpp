#include "nn/head.h"

#include "ops/embedding/embedding.h"

namespace bloomery {

Head::Head(std::int64_t hidden, const NormOptions& norm, std::shared_ptr<Parameter> weight,
           const HeadOptions& options)
    : norm_("final_norm", hidden, norm), weight_(std::move(weight)), options_(options) {}

HeadLoss Head::loss(Context& context, State state) const {
  return head_loss(context, norm_(context, state), *weight_, options_);
}

Value Head::logits(Context& context, State state, const Tensor& rows) const {
  if (rows) {
    state.stream = take_rows(context, state.stream, rows);
    if (state.pending) {
      state.pending = take_rows(context, state.pending, rows);
    }
  }
  return head_logits(context, norm_(context, state), *weight_, options_);
}

void Head::collect(ParameterList& parameters) const {
  norm_.collect(parameters);
  parameters.push_back(weight_.get());
}

}  // namespace bloomery
