// Attention by cuDNN, on the strided Q, K, V buffers as they are, but for query heads of groups
// that stand apart. Plans are built once per problem and kept on the device, including the
// knowledge that a problem has none.
#include <cudnn_frontend.h>

#include <array>
#include <bit>
#include <list>
#include <map>
#include <optional>
#include <source_location>
#include <unordered_map>

#include "device/cuda_check.h"
#include "ops/arithmetic/copy_columns.h"
#include "ops/attention/attention_backends.h"
#include "ops/attention/attention_settings.h"
#include "ops/attention/cudnn_library.h"

namespace bloomery::attention_cuda {
namespace {

namespace fe = cudnn_frontend;
using GraphTensor = std::shared_ptr<fe::graph::Tensor_attributes>;

void check_cudnn(cudnnStatus_t status, const char* call,
                 const std::source_location& at = std::source_location::current()) {
  check(status == CUDNN_STATUS_SUCCESS, "cuDNN: ", call, " failed: ", cudnnGetErrorString(status),
        place(at));
}

enum Uid : std::int64_t { kQ = 1, kK, kV, kOut, kLse, kGradOut, kGradQ, kGradK, kGradV };

// Everything a plan depends on, as numbers, so that it can be compared.
using PlanKey = std::array<std::int64_t, 29>;

struct Plan {
  std::unique_ptr<fe::graph::Graph> graph;  // null: cuDNN cannot do it
  std::int64_t workspace_bytes = 0;
};

// The handle and the plans of one device, least recently used plans dropped first.
class CudnnAttention {
 public:
  explicit CudnnAttention(Device&) { check_cudnn(cudnnCreate(&handle_), "cudnnCreate"); }
  ~CudnnAttention() { cudnnDestroy(handle_); }
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  template <class Describe>
  const Plan& plan(const PlanKey& key, const Describe& describe) {
    if (const auto found = index_.find(key); found != index_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return order_.front().second;
    }
    if (order_.size() == kMaxPlans) {
      index_.erase(order_.back().first);
      order_.pop_back();
    }
    order_.emplace_front(key, build(describe));
    index_[key] = order_.begin();
    return order_.front().second;
  }

  void execute(Stream& stream, const Plan& plan, std::unordered_map<std::int64_t, void*> pointers) {
    check_cudnn(cudnnSetStream(handle_, cuda_stream(stream)), "cudnnSetStream");
    const Tensor workspace = Tensor::empty(stream, DType::uint8, {plan.workspace_bytes});
    fe::error_t status = plan.graph->execute(handle_, pointers, workspace.data());
    check(status.is_good(), "cuDNN: attention failed: ", status.get_message(),
          place(std::source_location::current()));
  }

 private:
  static constexpr std::size_t kMaxPlans = 64;

  template <class Describe>
  Plan build(const Describe& describe) {
    auto graph = std::make_unique<fe::graph::Graph>();
    describe(*graph);
    Plan plan;
    if (graph->build(handle_, {fe::HeurMode_t::A}).is_good() &&
        graph->get_workspace_size(plan.workspace_bytes).is_good()) {
      plan.graph = std::move(graph);
    }
    return plan;
  }

  cudnnHandle_t handle_ = nullptr;
  std::list<std::pair<PlanKey, Plan>> order_;  // most recently used first
  std::map<PlanKey, decltype(order_)::iterator> index_;
};

// Distance between neighbouring heads of Q, K or V, or nothing when groups stand apart from the
// heads within them.
std::optional<std::int64_t> head_stride(const HeadView& view, std::int64_t heads_per_group,
                                        std::int64_t head_dim) {
  if (heads_per_group == 1) {
    return view.group_stride;
  }
  return view.group_stride == heads_per_group * head_dim ? std::optional(head_dim) : std::nullopt;
}

bool aligned(const HeadView& view) {
  return reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0 && view.token_stride % 8 == 0 &&
         view.group_stride % 8 == 0;
}

// [tokens, heads, head_dim].
HeadView dense_heads(const AttentionProblem& p) {
  return {.token_stride = p.num_heads * p.head_dim,
          .group_stride = p.heads_per_group() * p.head_dim};
}

// Query heads, or their gradients, as cuDNN can be told of them. Where the keys and values of each
// group stand between groups of several heads there are no strides for them: then it gets a dense
// copy, which costs a pass over the queries; cuDNN's kernels gain more.
class Queries {
 public:
  Queries(const AttentionProblem& problem, const HeadView& where)
      : problem_(problem),
        where_(where),
        apart_(!head_stride(where, problem.heads_per_group(), problem.head_dim) &&
               where.token_stride == problem.num_groups * where.group_stride),
        view_(apart_ ? dense_heads(problem) : where) {}

  const HeadView& view() const { return view_; }
  // Where cuDNN reads them, after this in the stream.
  void* gathered(Stream& stream) {
    void* const data = place(stream);
    if (apart_) {
      move(stream, {where_.data, problem_.dtype}, where_.group_stride, copy_, view_.group_stride);
    }
    return data;
  }
  // Where it writes them, to be followed by spread().
  void* place(Stream& stream) {
    if (apart_) {
      copy_ = Tensor::empty(stream, problem_.dtype,
                            {problem_.num_sequences * problem_.query_length, view_.token_stride});
    }
    return apart_ ? copy_.data() : where_.data;
  }
  void spread(Stream& stream) const {
    if (apart_) {
      move(stream, copy_, view_.group_stride, {where_.data, problem_.dtype}, where_.group_stride);
    }
  }

 private:
  void move(Stream& stream, const View& from, std::int64_t from_width, const View& to,
            std::int64_t to_width) const {
    launch(stream,
           CopyColumns{.x = from,
                       .y = to,
                       .rows = problem_.num_sequences * problem_.query_length * problem_.num_groups,
                       .columns = problem_.heads_per_group() * problem_.head_dim,
                       .x_width = from_width,
                       .y_width = to_width});
  }

  const AttentionProblem& problem_;
  HeadView where_;
  bool apart_;
  HeadView view_;
  Tensor copy_;
};

class GraphBuilder {
 public:
  GraphBuilder(fe::graph::Graph& graph, const AttentionProblem& problem)
      : graph_(graph), problem_(problem) {
    const auto type =
        problem.dtype == DType::bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF;
    graph.set_io_data_type(type)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
  }

  GraphTensor input(const char* name, Uid uid, const HeadView& view, bool queries) {
    return graph_.tensor(fe::graph::Tensor_attributes()
                             .set_name(name)
                             .set_uid(uid)
                             .set_dim(dims(queries))
                             .set_stride(strides(view, queries)));
  }
  void output(const GraphTensor& tensor, Uid uid, const HeadView& view, bool queries) {
    tensor->set_output(true).set_uid(uid).set_dim(dims(queries)).set_stride(strides(view, queries));
  }
  GraphTensor lse_input() {
    return graph_.tensor(lse_attributes(fe::graph::Tensor_attributes().set_name("lse")));
  }
  void lse_output(const GraphTensor& tensor) { lse_attributes(tensor->set_output(true)); }

  // The output of attention and its gradient.
  HeadView dense() const { return dense_heads(problem_); }

 private:
  std::vector<std::int64_t> dims(bool queries) const {
    return {problem_.num_sequences, queries ? problem_.num_heads : problem_.num_groups,
            queries ? problem_.query_length : problem_.key_length, problem_.head_dim};
  }
  std::vector<std::int64_t> strides(const HeadView& view, bool queries) const {
    const std::int64_t length = queries ? problem_.query_length : problem_.key_length;
    const std::int64_t per_group = queries ? problem_.heads_per_group() : 1;
    return {length * view.token_stride, *head_stride(view, per_group, problem_.head_dim),
            view.token_stride, 1};
  }
  fe::graph::Tensor_attributes& lse_attributes(fe::graph::Tensor_attributes& tensor) const {
    return tensor.set_uid(kLse)
        .set_dim({problem_.num_sequences, problem_.num_heads, problem_.query_length, 1})
        .set_stride({problem_.num_heads * problem_.query_length, problem_.query_length, 1, 1})
        .set_data_type(fe::DataType_t::FLOAT);
  }
  fe::graph::Tensor_attributes lse_attributes(fe::graph::Tensor_attributes&& tensor) const {
    return lse_attributes(tensor);
  }

  fe::graph::Graph& graph_;
  const AttentionProblem& problem_;
};

// Which keys a query sees, in the options of either direction.
template <class Options>
void set_visible(Options& options, const AttentionProblem& problem) {
  if (problem.causal) {
    options.set_causal_mask(true);
  }
  if (problem.window > 0) {
    options.set_diagonal_band_left_bound(static_cast<int>(problem.window));
  }
}

void describe(fe::graph::Graph& graph, const AttentionForward& k) {
  GraphBuilder builder(graph, k.problem);
  auto options = fe::graph::SDPA_attributes()
                     .set_name("attention")
                     .set_attn_scale(k.problem.scale)
                     .set_generate_stats(static_cast<bool>(k.lse));
  set_visible(options, k.problem);
  const auto [out, lse] =
      graph.sdpa(builder.input("q", kQ, k.q, true), builder.input("k", kK, k.k, false),
                 builder.input("v", kV, k.v, false), options);
  builder.output(out, kOut, builder.dense(), true);
  if (k.lse) {
    builder.lse_output(lse);
  }
}

void describe(fe::graph::Graph& graph, const AttentionBackward& k, bool deterministic) {
  GraphBuilder builder(graph, k.problem);
  auto options = fe::graph::SDPA_backward_attributes()
                     .set_name("attention_backward")
                     .set_attn_scale(k.problem.scale)
                     .set_deterministic_algorithm(deterministic);
  set_visible(options, k.problem);
  const auto [grad_q, grad_k, grad_v] = graph.sdpa_backward(
      builder.input("q", kQ, k.q, true), builder.input("k", kK, k.k, false),
      builder.input("v", kV, k.v, false), builder.input("out", kOut, builder.dense(), true),
      builder.input("grad_out", kGradOut, builder.dense(), true), builder.lse_input(), options);
  builder.output(grad_q, kGradQ, k.grad_q, true);
  builder.output(grad_k, kGradK, k.grad_k, false);
  builder.output(grad_v, kGradV, k.grad_v, false);
}

// The strides of the views, after the shape; views beyond the given ones count as zeros.
PlanKey plan_key(const AttentionProblem& p, bool backward, bool option,
                 std::initializer_list<HeadView> views) {
  PlanKey key{backward,     option,         static_cast<std::int64_t>(p.dtype),
              p.causal,     p.head_dim,     std::bit_cast<std::int32_t>(p.scale),
              p.num_groups, p.num_heads,    p.num_sequences,
              p.key_length, p.query_length, p.window};
  std::size_t at = 12;
  for (const HeadView& view : views) {
    key[at++] = view.token_stride;
    key[at++] = view.group_stride;
  }
  return key;
}

bool describable(const AttentionProblem& p, std::initializer_list<HeadView> views) {
  return std::ranges::all_of(views, [&](const HeadView& view) { return aligned(view); }) &&
         head_stride(*views.begin(), p.heads_per_group(), p.head_dim).has_value();
}

bool dense_aligned(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; }

}  // namespace

bool cudnn_available() { return cudnn_found(); }

bool cudnn_run(Stream& stream, const AttentionForward& given) {
  AttentionForward k = given;
  Queries queries(given.problem, given.q);
  k.q = queries.view();
  if (!cudnn_found() || !cudnn_applies(k.problem) || !describable(k.problem, {k.q, k.k, k.v}) ||
      !dense_aligned(k.out.data)) {
    return false;
  }
  Device& device = stream.device();
  auto& library = device.service<CudnnAttention>();
  const Plan& plan =
      library.plan(plan_key(k.problem, false, static_cast<bool>(k.lse), {k.q, k.k, k.v}),
                   [&](fe::graph::Graph& graph) { describe(graph, k); });
  if (plan.graph == nullptr ||
      plan.workspace_bytes > device.service<AttentionSettings>().max_workspace_bytes) {
    return false;
  }
  library.execute(stream, plan,
                  {{kQ, queries.gathered(stream)},
                   {kK, k.k.data},
                   {kV, k.v.data},
                   {kOut, k.out.data},
                   {kLse, k.lse.data}});
  return true;
}

bool cudnn_run(Stream& stream, const AttentionBackward& given) {
  AttentionBackward k = given;
  Queries queries(given.problem, given.q), grad_queries(given.problem, given.grad_q);
  k.q = queries.view();
  k.grad_q = grad_queries.view();
  if (!cudnn_found() || !cudnn_applies_backward(k.problem) ||
      !describable(k.problem, {k.q, k.k, k.v, k.grad_k, k.grad_v}) ||
      !describable(k.problem, {k.grad_q}) || !dense_aligned(k.out.data) ||
      !dense_aligned(k.grad_out.data)) {
    return false;
  }
  Device& device = stream.device();
  const auto& settings = device.service<AttentionSettings>();
  auto& library = device.service<CudnnAttention>();
  const Plan& plan =
      library.plan(plan_key(k.problem, true, settings.deterministic,
                            {k.q, k.k, k.v, k.grad_q, k.grad_k, k.grad_v}),
                   [&](fe::graph::Graph& graph) { describe(graph, k, settings.deterministic); });
  if (plan.graph == nullptr || plan.workspace_bytes > settings.max_workspace_bytes) {
    return false;
  }
  library.execute(stream, plan,
                  {{kQ, queries.gathered(stream)},
                   {kK, k.k.data},
                   {kV, k.v.data},
                   {kOut, const_cast<void*>(k.out.data)},
                   {kLse, const_cast<void*>(k.lse.data)},
                   {kGradOut, const_cast<void*>(k.grad_out.data)},
                   {kGradQ, grad_queries.place(stream)},
                   {kGradK, k.grad_k.data},
                   {kGradV, k.grad_v.data}});
  grad_queries.spread(stream);
  return true;
}

}  // namespace bloomery::attention_cuda
