#include "nn/head.h"

#include "autograd/metrics.h"
#include "ops/embedding/embedding.h"
#include "parallel/sequence.h"

namespace bloomery {

Head::Head(const ModelOptions& options, const Mesh& mesh, std::shared_ptr<Parameter> weight,
           std::int64_t first_token)
    : norm_("final_norm", options.hidden_size, options.norm, mesh),
      weight_(std::move(weight)),
      options_{.vocabulary = options.vocabulary.size,
               .first_token = first_token,
               .padded_in_softmax = options.vocabulary.padded_in_softmax,
               .fp16_loss = options.vocabulary.fp16_loss,
               .sums_input_gradient = !mesh.divides_tokens()} {}

State Head::forward(Context& context, State state) const {
  if (context.batch.labels) {
    check(context.metrics != nullptr, "a loss needs a place to be reported to");
    const Value x = gather_tokens(context, norm_(context, state));
    HeadLoss result = head_loss(context, x, *weight_, options_);
    context.metrics->report("lm loss", std::move(result.loss.data));
    context.metrics->token_losses = std::move(result.token_losses);
    return {};
  }
  if (const Tensor& rows = context.batch.output_rows) {
    state.stream = take_rows(context, state.stream, rows);
    if (state.pending) {
      state.pending = take_rows(context, state.pending, rows);
    }
  }
  const Value x = gather_tokens(context, norm_(context, state));
  return {.stream = head_logits(context, x, *weight_, options_)};
}

void Head::collect(ParameterList& parameters) const {
  norm_.collect(parameters);
  parameters.push_back(weight_.get());
}

}  // namespace bloomery
