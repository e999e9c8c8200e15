// The loss of a head on pairs of texts, of which one is preferred: ops/loss/preference.h has the
// formulas. As in head_loss the logits never exist as a whole: a first pass over the chunks finds
// how likely the answers are, from which follows what each token weighs, and a second one, of the
// output projection alone, has the gradients.
#pragma once

#include "ops/loss/preference.h"
#include "parallel/head_loss.h"

namespace bloomery {

struct PreferenceResult {
  // Accumulation dtype [kNumPreferenceFigures]: the sum over the ranks of the sequence axes is the
  // mean over the pairs. Like the loss of head_loss it has no gradient slot.
  Tensor figures;
  Tensor logps;         // accumulation dtype [sequences]: of each answer, over those ranks
  Tensor token_losses;  // of head_loss
};

// The batch has pairs: an even number of sequences, and Batch::reference. Other arguments, and what
// happens with a tape, are those of head_loss.
PreferenceResult preference_loss(Context& context, const Value& x, Parameter& weight,
                                 const HeadOptions& options, Parameter* bias,
                                 const PreferenceOptions& preference);

}  // namespace bloomery
