// The output projection and the softmax cross-entropy as one op, over chunks of tokens, with the
// vocabulary split over the tensor axis: the logits of a micro-batch never exist as a whole.
#pragma once

#include "autograd/context.h"
#include "comm/mesh.h"
#include "parallel/distillation.h"

namespace bloomery {

struct HeadOptions {
  // Global size; columns at or past it are padding: they take no part in the softmax and get a
  // gradient of zero.
  std::int64_t vocabulary = 0;
  std::int64_t first_token = 0;    // global index of this rank's first column
  bool padded_in_softmax = false;  // padding columns count, as in Megatron
  bool weighted = false;  // the mask has weights of any sign: losses are summed, not averaged
  std::int64_t chunk_tokens = 0;  // 0: chosen by size
  // Axes whose ranks hold the other columns; none: all are here.
  AxisSet column_axes = axis_bit(Axis::tensor);
  // Axes whose ranks hold other tokens of the same sequences: a mean is over all of them.
  AxisSet sequence_axes = axis_bit(Axis::context);
  // The gradient of x is summed over the column axes here; false: whoever made x does it.
  bool sums_input_gradient = true;
};

struct HeadLoss {
  // In the accumulation dtype, [1]: sum(mask * loss) over the tokens here / sum(mask) over those of
  // all sequence_axes, 0 when the mask is all zeros. So the mean loss of the micro-batch is the sum
  // over those axes, and so are gradients. It has no gradient slot: see head_loss.
  Value loss;
  Tensor token_losses;  // accumulation dtype [tokens], not masked
  Tensor distillation;  // [1], as `loss`: what a teacher adds to it; null without one
};

// x: [tokens, hidden], the same on all ranks of the column axes; weight: [columns held here,
// hidden]; bias: [columns held here], added to the logits, or null; labels and loss mask are the
// batch's, which must not be null respectively may.
//
// With a tape the gradients are computed in this forward pass, where the logits exist, for an
// upstream gradient of batch.grad_scale: those of `weight` and `bias` are written at once, that of
// x is kept and handed over in the backward pass, when it also counts as a contribution to both.
// The op must therefore not stand inside a recomputed segment. With a teacher, which may be null,
// gradients are those of both losses.
HeadLoss head_loss(Context& context, const Value& x, Parameter& weight, const HeadOptions& options,
                   Parameter* bias = nullptr, const Distillation* distillation = nullptr);

// [tokens, columns held here] without gradients; padding columns are -inf unless they count in the
// softmax.
Value head_logits(Context& context, const Value& x, Parameter& weight, const HeadOptions& options,
                  const Parameter* bias = nullptr);

// [tokens, columns of all tensor ranks], which all of them get, of what head_logits() gave each.
Tensor logits_of_all_ranks(Stream& stream, Mesh& mesh, const Tensor& logits);

}  // namespace bloomery
