#include "parallel/preference.h"

namespace bloomery {

PreferenceResult preference_loss(Context& context, const Value& x, Parameter& weight,
                                 const HeadOptions& options, Parameter* bias,
                                 const PreferenceOptions& preference) {
  const Batch& batch = context.batch;
  const std::int64_t sequences = batch.num_sequences;
  check(sequences % 2 == 0 && batch.reference && batch.reference.dtype() == DType::fp32 &&
            batch.reference.shape() == Shape{sequences},
        "preference_loss: ", sequences,
        " sequences must be pairs with the log-probability of each under the reference, fp32",
        Shape{sequences}, ", not ", batch.reference.dtype(), batch.reference.shape());
  Stream& stream = context.stream;
  Communicator& ranks = context.mesh.axes(options.sequence_axes);
  Context silent = context.with_batch(batch);
  silent.tape = nullptr;
  PreferenceResult result;
  result.token_losses = head_loss(silent, x, weight, options, bias).token_losses;
  const DType dtype = result.token_losses.dtype();
  const Tensor sums = Tensor::empty(stream, dtype, {2, sequences});
  launch(stream, AnswerSums{.losses = result.token_losses, .mask = batch.loss_mask, .sums = sums});
  ranks.all_reduce(sums, Reduce::sum, stream);
  result.logps = sums.range(0, {sequences});
  result.figures = Tensor::empty(stream, dtype, {kNumPreferenceFigures});
  const Tensor weights = Tensor::empty(stream, dtype, {sequences});
  launch(stream, PreferencePairs{.sums = sums,
                                 .reference = batch.reference,
                                 .options = preference,
                                 .share = 1.0 / ranks.size(),
                                 .figures = result.figures,
                                 .weights = weights});
  if (context.tape != nullptr) {
    Batch weighted = batch;
    weighted.loss_mask = Tensor::empty(stream, DType::fp32, {x.shape()[0]});
    launch(stream, AnswerWeights{
                       .mask = batch.loss_mask, .weights = weights, .tokens = weighted.loss_mask});
    HeadOptions of_weights = options;
    of_weights.weighted = true;
    Context learning = context.with_batch(weighted);
    head_loss(learning, x, weight, of_weights, bias);
  }
  return result;
}

}  // namespace bloomery
