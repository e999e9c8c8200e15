#include "base/findings.h"
#include "models/family.h"

namespace bloomery {
namespace {

void check_division(const ModelOptions& o, const MeshDegrees& mesh, Findings& f) {
  const SelfAttentionOptions& a = o.attention;
  f.require(a.head_dim * a.num_heads > 0, "hidden size ", o.hidden_size, " is too small for ",
            a.num_heads, " attention heads");
  f.require(a.head_dim * a.num_heads == o.hidden_size || o.hidden_size % a.num_heads == 0 ||
                a.head_dim != o.hidden_size / a.num_heads,
            "hidden size ", o.hidden_size, " is not a multiple of ", a.num_heads,
            " attention heads");
  f.require(a.num_heads % a.num_groups == 0, a.num_heads, " attention heads are not a multiple of ",
            a.num_groups, " key/value heads");
  f.require(a.num_groups % mesh.tensor == 0, a.num_groups,
            " key/value heads cannot be divided among ", mesh.tensor, " tensor-parallel ranks");
  f.require(a.num_groups % mesh.tensor != 0 || a.num_groups / mesh.tensor % mesh.context == 0,
            a.num_groups, " key/value heads over ", mesh.tensor,
            " tensor-parallel ranks cannot be divided among ", mesh.context,
            " sequence-parallel ones");
  f.require(o.mlp.ffn % mesh.tensor == 0, "feed-forward size ", o.mlp.ffn,
            " cannot be divided among ", mesh.tensor, " tensor-parallel ranks");
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
  check_positions(o, f);
  for (const float p : {o.attention.dropout, o.residual.dropout}) {
    f.require(p >= 0 && p < 1, "dropout probability ", p, " is not in [0, 1)");
  }
  if (const auto further = find_family(o.family).problems) {
    f.add(further(o, degrees));
  }
  return f.found;
}

}  // namespace bloomery
