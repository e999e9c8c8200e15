#include "nn/token_dropping.h"

#include <algorithm>

#include "autograd/features.h"
#include "nn/block.h"
#include "ops/token_choice/token_choice.h"
#include "parallel/sequence.h"

namespace bloomery {

bool TokenDropping::applies(const Context& context, int layer) const {
  return kept > 0 && context.training && kept < context.batch.length &&
         std::ranges::find(layers, layer) != layers.end();
}

State on_kept_tokens(Context& context, State state, RandomKey key, const Segment& layer) {
  TokenDropping& dropping = *context.features.token_dropping;
  state = add_pending(context, std::move(state));
  const TokenChoice choice = choose_tokens(context, key, dropping.kept);
  const auto batch = std::make_shared<const Batch>(chosen_batch(context, choice));
  dropping.batches.push_back(batch);
  Context some = context.with_batch(*batch);
  // Where tensor ranks divide the tokens of the stream, they divide the kept ones as well.
  const Value all = gather_tokens(context, state.stream);
  State kept{.stream = take_chosen(context, all, choice, local_tokens(context.mesh, *batch))};
  kept = add_pending(some, layer(some, std::move(kept)));
  const Value fresh = gather_tokens(some, kept.stream);
  state.stream =
      put_chosen(context, state.stream, fresh, choice, local_tokens(context.mesh, context.batch));
  return state;
}

}  // namespace bloomery
