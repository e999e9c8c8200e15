// Some tokens of each sequence, drawn at random, for layers that compute these alone while the
// others pass by (random-LTD).
#pragma once

#include "autograd/context.h"
#include "device/launch.h"

namespace bloomery {

// Of each sequence the same number of tokens, in order.
struct TokenChoice {
  std::int64_t num_sequences = 0, length = 0, kept = 0;
  Tensor rows;    // int32 [sequences kept]: the tokens of the batch that were chosen
  Tensor number;  // int32 [sequences length]: which of them a token is; -1: none

  std::int64_t num_chosen() const { return num_sequences * kept; }
};

// Every subset of `kept` tokens is equally likely, and a function of the key, the batch's samples
// and the places in it. The sequences are whole, and more tokens than are kept.
TokenChoice choose_tokens(Context& context, RandomKey key, std::int64_t kept);

// The batch of the chosen tokens alone. Places are counted anew, and ranges of keys with them;
// positions stay what they were. It has no labels.
Batch chosen_batch(Context& context, const TokenChoice& choice);

// Rows [first, first + count) of the chosen ones, out of x with all tokens. Backward leaves zeros
// in the others.
Value take_chosen(Context& context, const Value& x, const TokenChoice& choice,
                  const TokenRange& part);

// `x` has the rows of the tokens `held`: those that were chosen are replaced by their row of
// `fresh`, which has all chosen ones.
Value put_chosen(Context& context, const Value& x, const Value& fresh, const TokenChoice& choice,
                 const TokenRange& held);

struct DrawKeptTokens {
  ConstView samples;  // int64 [sequences]
  View rows, number;  // of TokenChoice
  std::int64_t length = 0, kept = 0;
  RandomKey key = 0;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const DrawKeptTokens&);
void run(OnCuda, Stream&, const DrawKeptTokens&);

// Numbers by token, of the chosen ones: positions as they are, ends of ranges as the number of
// chosen tokens before them. What is null is left out.
struct ChosenNumbers {
  ConstView rows, positions, key_begin, key_end;
  View chosen_positions, chosen_begin, chosen_end;
  std::int64_t length = 0, kept = 0;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const ChosenNumbers&);
void run(OnCuda, Stream&, const ChosenNumbers&);

// Row i of `to` (+)= row index[i] - first of `from`, where that is one of its rows; else row i of
// `otherwise`; else zero. Without `from` only rows with a negative index get `otherwise`.
struct SelectRows {
  ConstView index;  // int32 [rows of to]
  ConstView from, otherwise;
  View to;
  std::int64_t first = 0;
  bool add = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const SelectRows&);
void run(OnCuda, Stream&, const SelectRows&);

// The bits by which tokens are ordered: those with the smallest are kept, the earlier of equal
// ones.
constexpr std::uint32_t token_order(RandomKey key, std::int64_t sample, std::int64_t place) {
  const auto bits = static_cast<std::uint64_t>(sample);
  return philox(key, {static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32),
                      static_cast<std::uint32_t>(place), 0})[0];
}

}  // namespace bloomery
