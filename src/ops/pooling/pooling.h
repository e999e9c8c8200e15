// What stands for a sequence as a whole: its first token, and the tanh that BERT's pooler ends in.
#pragma once

#include "autograd/context.h"
#include "device/launch.h"

namespace bloomery {

// The first token of each of the batch's sequences, [sequences, columns]: those among x, which has
// the rows of `held` tokens of the batch. Rows of sequences whose first token is not there are
// zero, so that the sum over ranks which divide the tokens is the whole.
Value first_tokens(Context& context, const Value& x, const TokenRange& held = {});

// y = tanh(x). Keeps y for the backward pass.
Value tanh(Context& context, const Value& x);

// y[b] = x[b length - first_token], or zeros where x has no such row.
struct FirstTokens {
  ConstView x;  // [tokens held, columns]
  View y;       // [sequences, columns]
  std::int64_t length = 0, first_token = 0;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const FirstTokens&);
void run(OnCuda, Stream&, const FirstTokens&);

// The rows that FirstTokens reads (+)= grad_y; without `add` all others become zero.
struct FirstTokensGradient {
  ConstView grad_y;
  View grad_x;
  std::int64_t length = 0, first_token = 0;
  bool add = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const FirstTokensGradient&);
void run(OnCuda, Stream&, const FirstTokensGradient&);

struct TanhForward {
  ConstView x;
  View y;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const TanhForward&);
void run(OnCuda, Stream&, const TanhForward&);

// grad_x (+)= grad_y (1 - y^2)
struct TanhBackward {
  ConstView grad_y, y;
  View grad_x;
  bool add = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const TanhBackward&);
void run(OnCuda, Stream&, const TanhBackward&);

}  // namespace bloomery
