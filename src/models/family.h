// A family of models: which of the common options it uses and how, its blocks, what its models are
// for, and its names in other programs' files. One value per family, in a file of its own that
// registry.cpp lists, or in a row of llama_families.cpp.
#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/hf_config.h"
#include "models/model.h"

namespace bloomery {

class OptionTable;

// How a tensor of Hugging Face's files becomes one of ours, and back. '#' in the names stands for
// the number of the layer, '<' for the one before it and '$' for the last. The first rule
// counts that has a name of ours and whose shape fits. Several of theirs, separated by '|', make
// one of ours: their parts lie along dimension x. The layout says their dimensions, then ours, in
// letters: v vocabulary, p positions, e hidden size, w the same once more, m key/value heads, h
// heads, d channels of a head, q those of all heads, g queries per key/value head, f feed-forward
// size, r buckets of relative distances, s token types, b two (a yes or no), c outputs of a task's
// head, t three (query, key, value), n experts, i feed-forward size of one, u of the shared one, x
// as many as `parts` says; one of their dimensions that is made of several is in parentheses,
// slowest first. '*' stands for the number of an expert: the parts of all experts make one of ours,
// one expert after another.
struct TensorRule {
  std::string_view ours, theirs, layout;
  std::string_view parts = "";  // extents of x: "g11" is queries per group, one key, one value
};

struct HuggingFace {
  std::string_view model_type;    // "llama"
  std::string_view architecture;  // "LlamaForCausalLM"
  std::string_view prefix;        // of all names but the output's: "model."
  std::string_view output;        // its name, which tied models leave out
  std::span<const TensorRule> tensors;
  std::span<const std::string_view> ignored;  // endings of names of stored buffers without numbers
  bool has_experts = false;                   // in place of its MLPs
  // Both directions: a reading config fills the options, a writing one is filled from them.
  void (*config)(HfConfig& config, ModelOptions& options) = nullptr;
};

// The forms that the models of a family may have, the first that fits is written; often one.
class HuggingFaceForms : public std::span<const HuggingFace> {
 public:
  constexpr HuggingFaceForms() = default;
  template <std::same_as<const HuggingFace*> Pointer>  // not what an array decays to
  constexpr HuggingFaceForms(const Pointer& form) : span(form, 1) {}
  template <std::size_t kCount>
  constexpr HuggingFaceForms(const HuggingFace (&forms)[kCount]) : span(forms) {}
};

// A tensor of Megatron's checkpoints: row-major it is ours, as far as a tensor rank holds it. '#'
// in the names stands for the number of the layer, '*' in theirs for an expert, whose tensors are
// one of ours, expert after expert.
struct MegatronTensor {
  static constexpr int kWhole = 99;
  std::string_view ours, theirs;
  int cut = kWhole;  // dimension of ours that tensor ranks divide; from the last one if negative
};

// An argument of Megatron's that the checkpoints of one family have beside those of all models.
struct MegatronArgument {
  std::string_view name;
  std::variant<bool, std::int64_t> value;
};

struct MegatronForm {
  std::span<const MegatronTensor> tensors;  // empty: Megatron has no such model
  // How some names begin that no other family's tensors have; empty: there are none.
  std::string_view own_names = "";
  // What Megatron cannot say of a model, each completing "it has no". May be null.
  std::vector<std::string> (*problems)(const ModelOptions& options) = nullptr;
  std::vector<MegatronArgument> (*arguments)(const ModelOptions& options) = nullptr;  // or null
};

// What a model tells at its end.
enum class FamilyHead : std::uint8_t {
  next_token,     // so it continues texts
  masked_tokens,  // or what a task asks, with its head instead
  text_vectors,   // as a retriever does, which has towers
};

// A retriever's blocks are two towers that give texts vectors. That of contexts comes first and
// reads the batch's `encoder`, that of queries the batch itself; what they leave is State::encoder
// and State::stream, [sequences, width], and where there are metrics to report to and both towers
// ran, the loss.
struct RetrieverTowers {
  BlockRange contexts, queries;
  std::int64_t width = 0;
  std::vector<std::int64_t> topk;  // shares of queries that are told: own context among the k best
};

struct Family {
  std::string_view name;             // "gpt"
  std::string_view summary;          // for help
  std::string_view dataset = "gpt";  // kind of sample that it is fed (samples/sample_kind.h)
  // What is different from ModelOptions' own defaults when a run of this family starts.
  void (*defaults)(ModelOptions& options) = nullptr;
  // Rows of the family's own options; the common ones are described for all. May be null.
  void (*describe)(OptionTable& table, ModelOptions& options) = nullptr;
  // Impossible combinations, one line each, beyond those of all models. May be null.
  std::vector<std::string> (*problems)(const ModelOptions& options,
                                       const MeshDegrees& degrees) = nullptr;
  int (*num_blocks)(const ModelOptions& options) = nullptr;
  // Of models with an encoder: the first block of the decoder, where a pipeline stage must begin.
  // The block before it leaves the encoder's output in the state. Null: there is no encoder.
  int (*decoder_begin)(const ModelOptions& options) = nullptr;
  FamilyHead head = FamilyHead::next_token;
  // Of retrievers; else null.
  RetrieverTowers (*towers)(const ModelOptions& options) = nullptr;
  // Blocks of the slice, of completed options.
  Blocks (*blocks)(const ModelOptions& options, const Mesh& mesh, DType dtype,
                   BlockRange slice) = nullptr;
  // The family of a model that this one may start from (--bert-load): a parameter whose name is one
  // of that model's behind a first part, as query.blocks.0.norm_1.gain, takes its values. Empty:
  // there is none.
  std::string_view starts_from = "";
  HuggingFaceForms hugging_face;  // empty: there is no such form
  MegatronForm megatron = {};

  // One stack of layers reads the batch: there is neither an encoder nor a tower.
  bool has_one_stack() const { return decoder_begin == nullptr && towers == nullptr; }
  bool is_decoder() const { return head == FamilyHead::next_token && has_one_stack(); }
};

// What a model of the family of `here` would be, of the same sizes and kinds as a stored one of the
// family that it starts from.
ModelOptions as_family(ModelOptions stored, const ModelOptions& here);

// In the order of help; the first is the default.
std::vector<const Family*> families();
// An Error names the nearest when there is none.
const Family& find_family(std::string_view name);
// The first one with this head.
const Family& family_with(FamilyHead head);
// Makes a family known, for programs (and tests) with one of their own: once, before it is used.
void add_family(const Family& family);

// Flags of all models and of the options' own family. `table` refers to `options`.
void describe_model(OptionTable& table, ModelOptions& options);

// All impossible combinations at once, one line each; empty when the model can be built.
std::vector<std::string> problems(const ModelOptions& options, const MeshDegrees& degrees);

}  // namespace bloomery
