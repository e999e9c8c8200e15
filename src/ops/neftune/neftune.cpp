#include "ops/neftune/neftune.h"

#include "ops/dropout/dropout.h"

namespace bloomery {

void add_noise(Context& context, const Value& x, const NoiseOptions& options) {
  const OpScope scope(context.stream, "add_noise");
  const Batch& batch = context.batch;
  const TokenRange& tokens = options.tokens;
  const std::int64_t end =
      tokens.count == TokenRange::kRest ? batch.num_tokens() : tokens.first + tokens.count;
  check(batch.samples && batch.places,
        "add_noise: noise needs the coordinates of the tokens; set batch.samples and batch.places");
  check(tokens.first >= 0 && end <= batch.num_tokens() && end - tokens.first == x.shape().rows(),
        "add_noise: ", x.shape().rows(), " rows for tokens [", tokens.first, ", ", end,
        ") of a batch of ", batch.num_tokens());
  launch(context.stream, AddNoise{.x = x.data,
                                  .places = token_places("add_noise", batch.samples, batch.places,
                                                         batch.num_sequences, batch.length),
                                  .first_token = tokens.first,
                                  .key = options.key,
                                  .size = options.size});
}

}  // namespace bloomery
