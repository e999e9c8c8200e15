#include "nn/head.h"

#include <array>

#include "autograd/features.h"
#include "autograd/metrics.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/dropout/dropout.h"
#include "ops/embedding/embedding.h"
#include "parallel/sequence.h"

namespace bloomery {

namespace {

// The part of [vocabulary] that belongs to the rows of [vocabulary, hidden] held here.
Box rows_of(const Parameter& weight) {
  Box box = Box::whole({weight.box.global[0]});
  box.offset[0] = weight.box.offset[0];
  box.extent[0] = weight.box.extent[0];
  return box;
}

}  // namespace

Head::Head(const ModelOptions& options, const Mesh& mesh, std::shared_ptr<Parameter> weight,
           std::int64_t first_token, const HeadExtras& extras)
    : norm_("final_norm", options.hidden_size, options.norm, mesh),
      weight_(std::move(weight)),
      options_{.vocabulary = options.vocabulary.size,
               .first_token = first_token,
               .padded_in_softmax = options.vocabulary.padded_in_softmax,
               .sums_input_gradient = !mesh.divides_tokens()},
      scale_(extras.scale),
      dropout_(extras.ends_in_dropout ? options.residual.dropout : 0) {
  if (extras.bias) {
    bias_ = std::make_unique<Parameter>(make_parameter("head.bias", rows_of(*weight_), {}, false));
    bias_->local_shape = {weight_->local_shape[0]};
  }
}

Value Head::normalised(Context& context, State& state) const {
  Value x = norm_(context, state);
  if (context.training) {
    x = dropout(context, x,
                {dropout_, random_key(context.seed, "output dropout"),
                 local_tokens(context.mesh, context.batch)});
  }
  x = gather_tokens(context, x);
  return scale_ == 1 ? x : scale(context, x, scale_);
}

State Head::forward(Context& context, State state) const {
  if (context.batch.labels) {
    check(context.metrics != nullptr, "a loss needs a place to be reported to");
    if (const PreferenceOptions* const pairs = context.features.preference) {
      report_preference(context, normalised(context, state), *pairs);
      return {};
    }
    const Distillation* const distillation = context.features.distillation;
    HeadLoss result = head_loss(context, normalised(context, state), *weight_, options_,
                                bias_.get(), distillation);
    context.metrics->report("lm loss", std::move(result.loss.data));
    if (distillation != nullptr) {
      context.metrics->report_beside(distillation->loss_name, std::move(result.distillation), 1);
    }
    context.metrics->token_losses = std::move(result.token_losses);
    return {};
  }
  if (const Tensor& rows = context.batch.output_rows) {
    state.stream = take_rows(context, state.stream, rows);
    if (state.pending) {
      state.pending = take_rows(context, state.pending, rows);
    }
  }
  return {.stream =
              head_logits(context, normalised(context, state), *weight_, options_, bias_.get())};
}

// Under TRL's names.
void Head::report_preference(Context& context, const Value& x,
                             const PreferenceOptions& options) const {
  constexpr std::array<std::string_view, kNumPreferenceFigures> kNames = {
      "dpo loss",        "rewards/chosen", "rewards/rejected", "rewards/accuracies",
      "rewards/margins", "logps/chosen",   "logps/rejected"};
  PreferenceResult result = preference_loss(context, x, *weight_, options_, bias_.get(), options);
  context.metrics->report(kNames[kPreferenceLoss], result.figures.range(kPreferenceLoss, {1}));
  for (int i = kPreferenceLoss + 1; i < kNumPreferenceFigures; ++i) {
    context.metrics->report_beside(kNames[static_cast<std::size_t>(i)],
                                   result.figures.range(i, {1}), 1);
  }
  context.metrics->token_losses = std::move(result.token_losses);
  context.metrics->answer_logps = std::move(result.logps);
}

TeacherHead Head::as_teacher(Context& context, State state) const {
  return {normalised(context, state).data, weight_.get(), bias_.get()};
}

void Head::collect(ParameterList& parameters) const {
  norm_.collect(parameters);
  parameters.push_back(weight_.get());
  if (bias_) {
    parameters.push_back(bias_.get());
  }
}

}  // namespace bloomery
