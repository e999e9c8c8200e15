// Dropout of activations [tokens, channels] by counter: masks are never stored, backward makes the
// same one again.
#pragma once

#include "autograd/context.h"
#include "device/launch.h"
#include "ops/dropout/counter.h"

namespace bloomery {

// What a kernel needs to know the mask of row t (token first_token + t) of an activation, of which
// the first channel is number 8 * first_block.
struct DropoutMask {
  std::uint32_t threshold = 0;  // 0: everything is kept, and the rest is not read
  RandomKey key = 0;
  TokenPlaces places;
  std::int64_t first_token = 0;
  std::uint32_t first_block = 0;

  explicit constexpr operator bool() const { return threshold != 0; }
};

// A mask together with the coordinates that it points to, which must live until backward.
struct ActiveDropout {
  DropoutMask mask;
  Tensor samples, places;
};

// The mask for an activation of `rows` rows, the tokens of the options: empty when not training or
// when nothing is dropped. `op` is named in the error about missing coordinates.
ActiveDropout active_dropout(const Context& context, const DropoutOptions& options,
                             std::int64_t rows, const char* op);

// Checks coordinates of num_sequences * length tokens, in either form, and points to them. Samples
// may be null. `op` is named in errors.
TokenPlaces token_places(const char* op, const Tensor& samples, const Tensor& places,
                         std::int64_t num_sequences, std::int64_t length);

// x [tokens, channels] with elements dropped and the others scaled so that the mean stays. The
// same value when there is nothing to drop. dx = mask * scale * dy. `first_channel` is that of a
// whole row which x begins with, a multiple of 8.
Value dropout(Context& context, const Value& x, const DropoutOptions& options,
              std::int64_t first_channel = 0);

// y = mask * scale * x, or y += that when `add`; the dtypes may differ.
struct ApplyDropout {
  ConstView x;  // [tokens, channels]
  View y;
  DropoutMask mask;
  bool add = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const ApplyDropout&);
void run(OnCuda, Stream&, const ApplyDropout&);

}  // namespace bloomery
