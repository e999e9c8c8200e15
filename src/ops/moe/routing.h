// Which experts a token goes to and with which weights: DeepSpeed's gates and those of Mixtral and
// Qwen. Probabilities are the softmax of the logits, in fp32.
#pragma once

#include "autograd/context.h"
#include "device/launch.h"
#include "ops/moe/router_rule.h"

namespace bloomery {

struct RoutingOptions {
  RouterRule rule;
  std::int64_t capacity = 0;  // tokens that an expert takes at most; 0: all that come
  TokenOrder order;
  // Multiplied by batch.grad_scale these are the gradients of the two losses.
  float balance_coefficient = 0, z_coefficient = 0;
};

// DeepSpeed's capacity: tokens / experts * factor * topk, rounded up, but at least `least`.
std::int64_t expert_capacity(std::int64_t tokens, std::int64_t experts, int topk, double factor,
                             std::int64_t least);

// The tokens that capacity and losses are counted over, where they are more than those held here.
struct AllTokens {
  Tensor logits, draws;    // [all tokens, experts]; null: those held here are all
  std::int64_t first = 0;  // place of the tokens held here
};

// What a router found, as device numbers of the accumulation dtype.
enum RoutingFigure : std::uint8_t { kBalanceLoss, kZLoss, kLargestLoad, kDroppedShare };
inline constexpr int kRoutingFigures = 4;

struct Routing {
  Value gates;     // accumulation dtype [tokens, topk]; 0 of what is dropped
  Tensor experts;  // int32 [tokens, topk]; -1: dropped
  // Balance loss E sum_e(mean p_e * share_e), 1 when balanced; mean squared logsumexp; the largest
  // load beside the mean one; dropped share of all choices.
  Tensor figures;
};

// logits [tokens, experts] of the accumulation dtype. `draws` (fp32, of their shape) are uniform
// numbers for Priority::random, Gumbel noise for Sampling; null where neither is asked for. The
// gradient of the logits is that of the gates (through the softmax and the sum that they are
// divided by) plus that of the two losses.
Routing route(Context& context, const Value& logits, const Tensor& draws,
              const RoutingOptions& options, const AllTokens& all = {});

// Rows of experts' inputs: those of an expert together, in the order of the tokens. The rows of an
// expert begin at multiples of an alignment (128 on CUDA, else 1); what lies between is zero.
struct RowGroups {
  Tensor offsets;  // int32 [groups + 1]
  Tensor tiles;    // int32 [rows / alignment]: group of each, -1 past the end; null where that is 1
  std::int64_t rows = 0;  // of the buffers; the last group may end before
};
struct Dispatch {
  RowGroups groups;
  Tensor source;  // int32 [rows]: token * topk + choice, or -1
  Tensor places;  // int32 [tokens, topk]: row, or -1
};
std::int64_t group_alignment(const Stream& stream);
Dispatch sort_by_expert(Stream& stream, const Tensor& experts, std::int64_t num_experts);

// Per token: chosen experts, their probabilities, and in parts of kTokensPerPart tokens the sums
// of probabilities [experts], counts of the choices that balance looks at [experts], of all
// choices [experts], and the sum of squared logsumexps [1].
inline constexpr std::int64_t kTokensPerPart = 256;
struct ChooseExperts {
  ConstView logits, draws;
  View experts, scores;  // [tokens, topk]
  View parts;            // [parts, 3 experts + 1]
  RouterRule rule;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const ChooseExperts&);
void run(OnCuda, Stream&, const ChooseExperts&);

struct SumRouting {
  ConstView parts;
  View load;     // [2, experts]: choices that balance looks at, and all
  View figures;  // [kRoutingFigures]
  std::int64_t tokens = 0, capacity = 0;
  RouterRule rule;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const SumRouting&);
void run(OnCuda, Stream&, const SumRouting&);

// Sets experts to -1 where they are over capacity.
struct DropOverCapacity {
  View experts;             // [tokens, topk]
  ConstView scores, draws;  // [tokens, topk], [tokens, experts]
  std::int64_t num_experts = 0, capacity = 0;
  Priority priority = Priority::random;
  TokenOrder order;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const DropOverCapacity&);
void run(OnCuda, Stream&, const DropOverCapacity&);

struct MakeGates {
  ConstView experts, scores;
  View gates;
  bool renormalise = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const MakeGates&);
void run(OnCuda, Stream&, const MakeGates&);

struct RouteBackward {
  ConstView logits, experts, grad_gates;  // of the tokens held here; grad_gates may be null
  ConstView load;                         // of SumRouting
  ConstView grad_scale;                   // fp32 [1], or null: one
  View grad_logits;
  bool add = false;
  std::int64_t tokens = 0;  // all
  RouterRule rule;
  float balance_coefficient = 0, z_coefficient = 0;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const RouteBackward&);
void run(OnCuda, Stream&, const RouteBackward&);

struct SortByExpert {
  ConstView experts;
  View offsets, source, places, tiles;
  std::int64_t alignment = 1;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const SortByExpert&);
void run(OnCuda, Stream&, const SortByExpert&);

}  // namespace bloomery
