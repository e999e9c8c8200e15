#include "train/step/attention_ahead.h"

#include <algorithm>
#include <tuple>

#include "train/plan/planned_rank.h"

namespace bloomery {
namespace {

bool by_shape_alone(const AttentionProblem& p) {
  return p.key_begin == nullptr && p.key_end == nullptr && p.key_places == nullptr &&
         p.bias == nullptr && p.dropout_threshold == 0;
}

auto shape_of(const AttentionProblem& p) {
  return std::tuple(p.dtype, p.num_sequences, p.query_length, p.key_length, p.num_heads,
                    p.num_groups, p.head_dim, p.scale, p.causal, p.window);
}

auto strides(const HeadView& view) { return std::tuple(view.token_stride, view.group_stride); }

template <class Call>
bool same(const Call& a, const Call& b) {
  return shape_of(a.problem) == shape_of(b.problem) && strides(a.q) == strides(b.q) &&
         strides(a.k) == strides(b.k) && strides(a.v) == strides(b.v);
}

template <class Call>
void add(std::vector<Call>& calls, const Call& call) {
  if (by_shape_alone(call.problem) &&
      std::ranges::none_of(calls, [&](const Call& each) { return same(each, call); })) {
    calls.push_back(call);
  }
}

class Listener final : public Collector {
 public:
  bool take(const std::type_info& type, const void* kernel) override {
    if (type == typeid(AttentionForward)) {
      add(calls.forward, *static_cast<const AttentionForward*>(kernel));
    } else if (type == typeid(AttentionBackward)) {
      add(calls.backward, *static_cast<const AttentionBackward*>(kernel));
    }
    return false;
  }
  void flush() override {}

  AttentionCalls calls;
};

// Enough for each of the call's tensors: all of them may lie in the same place.
template <class Call>
Tensor memory_for(Stream& stream, const Call& call) {
  const AttentionProblem& p = call.problem;
  const std::int64_t widest = std::max(
      {call.q.token_stride, call.k.token_stride, call.v.token_stride, p.num_heads * p.head_dim});
  const std::int64_t tokens = p.num_sequences * std::max(p.query_length, p.key_length);
  return Tensor::empty(stream, DType::fp32, {tokens * std::max(widest, p.num_heads)});
}

}  // namespace

AttentionCalls attention_calls(const Plan& plan, const SampleFields& fields) {
  Listener listener;
  Rank rank(abstract_rank(plan, DeviceKind::cuda),
            make_abstract_communicator(0, plan.rank.layout.degrees.num_ranks()));
  rank.stream().set_collector(&listener);
  take_planned_step(rank, plan, fields);
  rank.stream().set_collector(nullptr);
  return listener.calls;
}

void make_attention_plans(Stream& stream, const AttentionCalls& calls) {
  for (AttentionForward call : calls.forward) {
    const Tensor memory = memory_for(stream, call);
    call.q.data = call.k.data = call.v.data = call.out.data = memory.data();
    call.lse.data = call.lse.data == nullptr ? nullptr : memory.data();
    launch(stream, call);
  }
  for (AttentionBackward call : calls.backward) {
    const Tensor memory = memory_for(stream, call);
    call.q.data = call.k.data = call.v.data = memory.data();
    call.grad_q.data = call.grad_k.data = call.grad_v.data = memory.data();
    call.out.data = call.lse.data = call.grad_out.data = memory.data();
    launch(stream, call);
  }
}

}  // namespace bloomery
