// The choice of the next token from a model's logits, as Hugging Face's generation defines it:
// repetition penalty, then temperature, then the top-k, then the top-p of what is left, then min-p.
// Between penalty and temperature come biases of tokens, of which OpenAI's two penalties are a
// part. And the bookkeeping of a step of generation, so that steps need nothing of the host.
#pragma once

#include "base/random.h"
#include "device/launch.h"
#include "tensor/tensor.h"

namespace bloomery {

struct SamplingOptions {
  bool greedy = false;
  double temperature = 1;         // 0: greedy
  std::int64_t top_k = 0;         // only the k likeliest tokens (and ties with the last); 0: all
  double top_p = 0;               // only the likeliest tokens that make up this mass; 0: all
  double top_p_decay = 1;         // Megatron's server: top_p is multiplied by it with every token
  double top_p_bound = 0;         // and does not fall below this
  double min_p = 0;               // only tokens this likely, beside the likeliest; 0: all
  double repetition_penalty = 1;  // of tokens that the sequence has already
  double presence_penalty = 0;    // subtracted from logits of tokens that were drawn,
  double frequency_penalty = 0;   // once, and as often as they were
  std::int32_t banned = -1, banned_after = -1;  // a token that may not follow another; -1: none
  std::uint64_t seed = 1234;

  constexpr bool is_greedy() const { return greedy || temperature == 0 || top_k == 1; }
  constexpr bool has_top_k(std::int64_t vocabulary) const {
    return top_k > 0 && top_k < vocabulary;
  }
  constexpr bool has_top_p() const { return top_p > 0 && top_p < 1; }
  constexpr bool has_biases() const { return presence_penalty != 0 || frequency_penalty != 0; }
  constexpr double top_p_after(std::int32_t drawn) const {
    double p = top_p;
    for (std::int32_t i = 0; i < drawn && p > top_p_bound && top_p_decay != 1; ++i) {
      p *= top_p_decay;
    }
    return p > top_p_bound ? p : top_p_bound;
  }
};

// Draws a token for each of `count` rows. What row i draws depends on its key, the count of tokens
// it drew before and its scores alone. Devices give the same draws for the same logits, but for
// sums that differ in their last bits. Its log-probability is what the model itself gives: of the
// logits as they came.
//
// Logits that are not finite numbers are an Error on the CPU and give a log-probability that is
// NaN on CUDA. Nothing is drawn for a row whose `active` is 0.
struct SampleTokens {
  const SamplingOptions* options = nullptr;  // of each row, on the device
  std::int64_t count = 0;
  ConstView logits;                          // [.., columns], in any dtype of models
  std::int64_t vocabulary = 0;               // columns at or past it are padding
  const std::int32_t* logit_rows = nullptr;  // of each row; null: row i has the i-th logits
  const std::int32_t* active = nullptr;
  const RandomKey* keys = nullptr;
  std::int32_t* drawn = nullptr;  // tokens drawn before; goes up by one
  // [count, 2, occurred_words]: a bit per token that the sequence has, and per token that was
  // drawn; null: no row has a penalty.
  std::uint32_t* occurred = nullptr;
  float* biases = nullptr;         // [count, vocabulary], added to logits; null: none
  std::int32_t* tokens = nullptr;  // the last ones before, the drawn ones after
  float* log_probabilities = nullptr;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const SampleTokens&);
void run(OnCuda, Stream&, const SampleTokens&);

constexpr std::int64_t occurred_words(std::int64_t vocabulary) { return (vocabulary + 31) / 32; }

// What a step has drawn for a row; token -1: nothing.
struct Drawn {
  std::int32_t token = -1;
  float log_probability = 0;
};

// The likeliest tokens of each row with their log-probabilities, best first, as the model itself
// gives them. Comes between SampleTokens and AdvanceRows, whose step it goes by.
struct TopTokens {
  static constexpr int kMost = 20;

  std::int64_t count = 0;
  ConstView logits;
  std::int64_t vocabulary = 0;
  const std::int32_t *logit_rows = nullptr, *active = nullptr;  // as in SampleTokens
  const std::int32_t* step = nullptr;
  Drawn* ring = nullptr;  // [ring_steps, ring_rows, kMost], which the host reads
  std::int64_t ring_steps = 1, ring_rows = 0;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const TopTokens&);
void run(OnCuda, Stream&, const TopTokens&);

// The end of a step: writes what was drawn to the ring and makes rows ready for the next step. A
// row that drew an end token or its last one is no longer active; its token and length become 0, so
// that they are valid whatever a model does with them.
struct AdvanceRows {
  static constexpr int kMaxEnds = 16;

  std::int64_t count = 0;
  bool fed = false;  // the step fed the token that each active row had
  std::int32_t* tokens = nullptr;
  const float* log_probabilities = nullptr;
  std::int32_t *lengths = nullptr, *active = nullptr;
  std::int32_t* left = nullptr;  // tokens that the row may still draw
  int num_ends = 0;
  std::int32_t ends[kMaxEnds] = {};
  std::int32_t* step = nullptr;  // goes up by one
  Drawn* ring = nullptr;         // [ring_steps, ring_rows], which the host reads
  std::int64_t ring_steps = 1, ring_rows = 0;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const AdvanceRows&);
void run(OnCuda, Stream&, const AdvanceRows&);

// What AdvanceRows does with row i.
constexpr void advance_row(const AdvanceRows& k, std::int64_t i, Drawn& out) {
  std::int32_t &token = k.tokens[i], &length = k.lengths[i];
  std::int32_t &active = k.active[i], &left = k.left[i];
  if (active == 0) {
    out = {};
    return;
  }
  out = {token, k.log_probabilities[i]};
  length += k.fed ? 1 : 0;
  left -= 1;
  bool ended = left <= 0;
  for (int e = 0; e < k.num_ends; ++e) {
    ended = ended || token == k.ends[e];
  }
  if (ended) {
    active = token = length = 0;
  }
}

}  // namespace bloomery
