#include "base/findings.h"
#include "models/family.h"
#include "ops/moe/router_rule.h"

namespace bloomery {
namespace {

void check_division(const ModelOptions& o, const MeshDegrees& mesh, Findings& f) {
  const SelfAttentionOptions& a = o.attention;
  f.require(a.head_dim > 0, "hidden size ", o.hidden_size, " is not a multiple of ", a.num_heads,
            " attention heads");
  f.require(a.num_heads % a.num_groups == 0, a.num_heads, " attention heads are not a multiple of ",
            a.num_groups, " key/value heads");
  f.require(a.num_groups % mesh.tensor == 0, a.num_groups,
            " key/value heads cannot be divided among ", mesh.tensor, " tensor-parallel ranks");
  const int ulysses = mesh.degree(Axis::ulysses);
  f.require(a.num_groups % mesh.tensor != 0 || a.num_groups / mesh.tensor % ulysses == 0,
            a.num_groups, " key/value heads over ", mesh.tensor,
            " tensor-parallel ranks cannot be divided among ", ulysses,
            " sequence-parallel ones; --context-parallel-size divides sequences without heads");
  f.require(o.mlp.ffn % mesh.tensor == 0, "feed-forward size ", o.mlp.ffn,
            " cannot be divided among ", mesh.tensor, " tensor-parallel ranks");
}

void check_experts(const ModelOptions& o, const MeshDegrees& mesh, Findings& f) {
  const MoeOptions& m = o.moe;
  f.require(m.interval >= 1, "expert-interval ", m.interval, " must be at least 1");
  if (!m.any() || m.interval < 1) {
    f.require(mesh.expert == 1 || m.interval < 1, "moe-expert-parallel-size ", mesh.expert,
              " without experts: give --num-experts");
    return;
  }
  const std::int64_t places = o.num_layers / m.interval;
  f.require(m.num_experts.size() == 1 || static_cast<std::int64_t>(m.num_experts.size()) == places,
            "num-experts has ", m.num_experts.size(), " numbers, but ", places,
            " layers have experts (", o.num_layers, " layers, expert-interval ", m.interval,
            "): give one number, or one for each of them");
  f.require(places >= 1, "expert-interval ", m.interval, " leaves none of ", o.num_layers,
            " layers with experts");
  for (const std::int64_t count : m.num_experts) {
    f.require(count == 1 || m.topk <= count, "topk ", m.topk, " of ", count, " experts");
    f.require(count == 1 || count % mesh.expert == 0, count, " experts cannot be divided among ",
              mesh.expert, " expert-parallel ranks");
  }
  f.require(m.topk >= 1 && m.topk <= kMostChoices, "topk ", m.topk, " is not between 1 and ",
            kMostChoices);
  f.require(m.ffn % mesh.tensor == 0 && m.shared_ffn % mesh.tensor == 0, "experts of width ", m.ffn,
            " cannot be divided among ", mesh.tensor, " tensor-parallel ranks");
  f.require(mesh.ring == 1 || !m.drop_tokens,
            "experts with a capacity take tokens in the order of their sequences, of which "
            "--context-parallel-size makes pieces: give "
            "--disable-moe-token-dropping, or "
            "--ds-sequence-parallel-size instead");
  f.require(m.kind != MoeKind::residual || m.shared_ffn == 0,
            "a mixture has a residual MLP (mlp-type residual) or a shared expert, not both");
}

void check_attention(const ModelOptions& o, Findings& f) {
  const SelfAttentionOptions& a = o.attention;
  f.require(!a.head_norm || o.norm.kind == NormKind::rms,
            "norms of heads (--qk-layernorm) are RMS norms and need --normalization rmsnorm");
  f.require(a.window >= 0 && (a.window == 0 || a.causal), "a sliding window of ", a.window,
            " keys; only causal attention has one");
  f.require(a.window_layers.empty() ||
                std::ssize(a.window_layers) == static_cast<std::ptrdiff_t>(o.num_layers),
            "--window-attn-skip-freq has ", a.window_layers.size(), " numbers for ", o.num_layers,
            " layers");
}

void check_positions(const ModelOptions& o, Findings& f) {
  const PositionOptions& p = o.positions;
  f.require(!p.has_table() || p.max_length >= 1,
            "learned positions need max-position-embeddings of at least 1");
  f.require(p.rotary_fraction > 0 && p.rotary_fraction <= 1, "rotary fraction ", p.rotary_fraction,
            " is not in (0, 1]");
  const std::int64_t turned = p.rotary_dim(o.attention.head_dim);
  f.require(!p.rotary || (turned > 0 && turned % 2 == 0), "rotary fraction ", p.rotary_fraction,
            " turns ", turned, " channels of a head; it must be an even number of at least 2");
  const bool needs_length = p.scaling.kind == RotaryScaling::Kind::dynamic ||
                            p.scaling.kind == RotaryScaling::Kind::llama3 ||
                            p.scaling.kind == RotaryScaling::Kind::yarn;
  f.require(!p.rotary || !needs_length || p.scaling.original_length >= 1,
            "this rope scaling needs rope-original-length, the positions of the model before it "
            "was stretched");
}

void check_adapter(const AdapterOptions& a, Findings& f) {
  f.require(!a.enabled || (a.rank >= 1 && a.alpha > 0 && !a.targets.empty()), "adapters of rank ",
            a.rank, ", alpha ", a.alpha, " and ", a.targets.size(), " target modules");
  f.require(a.dropout >= 0 && a.dropout < 1, "lora-dropout ", a.dropout, " is not in [0, 1)");
}

}  // namespace

std::vector<std::string> problems(const ModelOptions& options, const MeshDegrees& degrees) {
  Findings f;
  const SelfAttentionOptions& a = options.attention;
  f.require(options.num_layers >= 1 && options.hidden_size >= 1 && a.num_heads >= 1 &&
                options.vocabulary.size >= 1 && options.vocabulary.divisible_by >= 1,
            "layers, hidden size, attention heads and vocabulary must be at least 1");
  f.require(a.num_groups >= 0 && a.head_dim >= 0 && options.mlp.ffn >= 0, "key/value heads ",
            a.num_groups, ", head dimension ", a.head_dim, " and feed-forward size ",
            options.mlp.ffn, " must not be negative; 0: by default");
  if (!f.found.empty()) {
    return f.found;
  }
  const ModelOptions o = completed(options);
  check_division(o, degrees, f);
  check_experts(o, degrees, f);
  check_attention(o, f);
  check_positions(o, f);
  for (const float p : {o.attention.dropout, o.residual.dropout}) {
    f.require(p >= 0 && p < 1, "dropout probability ", p, " is not in [0, 1)");
  }
  check_adapter(o.adapter, f);
  if (const auto further = find_family(o.family).problems) {
    f.add(further(o, degrees));
  }
  return f.found;
}

}  // namespace bloomery
