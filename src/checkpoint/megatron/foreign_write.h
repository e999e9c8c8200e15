// A model, with what a run had reached, in Megatron's and DeepSpeed's files.
#pragma once

#include <filesystem>
#include <numeric>
#include <span>

#include "checkpoint/megatron/names.h"
#include "checkpoint/model_record.h"
#include "checkpoint/model_source.h"
#include "checkpoint/pickle/torch_writer.h"

namespace bloomery {

struct ForeignLayout {
  int tensor = 1, pipeline = 1, expert = 1;
  bool padded = true;  // rows of the vocabulary

  // As few as expert ranks of that number need, which are counted over tensor ranks too.
  int data() const { return expert / std::gcd(expert, tensor); }
};

// Writes FOLDER/latest_checkpointed_iteration.txt and iter_N, or release where the source comes
// from no run: see docs/formats.md. An Error says why Megatron has no such model, or why it cannot
// be cut so. With the optimizer's states where the source has them, unless it is a `release`.
void write_megatron(const ModelSource& source, const std::filesystem::path& folder,
                    const ForeignLayout& layout, bool release = false);
// Writes FOLDER/latest and global_stepN, as the pipeline engine and ZeRO stage 1 leave them: with
// one data-parallel rank, or those that the expert ranks need.
void write_deepspeed(const ModelSource& source, const std::filesystem::path& folder,
                     const ForeignLayout& layout);

// Writes DeepSpeed's universal form of it, FOLDER with a file for every state of every parameter:
// needs the optimizer's states.
void write_universal(const ModelSource& source, const std::filesystem::path& folder,
                     const ForeignLayout& layout);
struct ExactWeightsForm {
  bool safetensors = false;  // else torch.save's files
  std::size_t max_shard_bytes = 5'000'000'000;
};
// Writes the exact weights alone under Megatron's names, as DeepSpeed's zero_to_fp32 does:
// FOLDER/pytorch_model.bin or model.safetensors, larger models in shards with an index.
void write_exact_weights(const ModelSource& source, const std::filesystem::path& folder,
                         const ExactWeightsForm& form);

// Throws an Error that lists what of the model Megatron has no flag for.
void require_megatron_form(const ModelOptions& options, const ForeignLayout& layout);

// What all forms have in common: the tensors of one rank, its arguments, its states.
class MegatronExporter {
 public:
  // A `release` is without the run: neither progress nor states.
  MegatronExporter(const ModelSource& source, const ForeignLayout& layout, bool release = false);

  // Of tensor rank and stage, in Megatron's order of parameters: those of layers with the number of
  // the whole model.
  std::vector<std::string> names(int stage) const;
  // Which numbers of a weight: the values that the model computes with, the exact ones, or a tensor
  // of the optimizer's state.
  struct Kind {
    std::string suffix;  // of the name in our checkpoints
    bool is_computed = false;

    static const Kind computed, exact;
    static Kind of(const StateTensor& tensor) { return {.suffix = state_name("", tensor)}; }
  };
  // Under a name of names().
  PyValue::Tensor tensor(const std::string& name, int rank, const Kind& kind) const;
  std::int64_t size(const std::string& name) const;  // elements on a rank
  static bool decays(const std::string& name);

  // A model with an encoder and a decoder has two stacks of layers, which pipelines do not mix.
  int num_stacks() const;
  int first_stage(int stack) const;
  int end_stage(int stack) const;
  // Whether there is a form of it that DeepSpeed's pipeline trains.
  bool is_decoder() const { return names_.find("lm_head.bias") == nullptr; }
  bool has_experts() const { return record().model.moe.any(); }
  // What it has of the optimizer's.
  std::span<const StateTensor> states() const { return states_; }
  bool has_states() const { return !states_.empty(); }
  bool tied() const { return !record().model.vocabulary.untied; }
  const ModelRecord& record() const { return source_.record(); }
  const ForeignLayout& layout() const { return layout_; }
  std::int64_t layers_per_stage() const { return record().model.num_layers / layout_.pipeline; }
  std::int64_t iteration() const;
  std::int64_t optimizer_steps() const { return number("optimizer_steps", iteration()); }
  std::int64_t skipped_steps() const { return number("skipped_steps", 0); }
  std::int64_t consumed_tokens() const;
  const RunState* run() const { return release_ ? nullptr : source_.state(); }

  PyValue arguments() const;
  double option(const char* name, double otherwise) const;  // a number of the run's options
  PyValue scheduler() const;                                // None: the source has none
  // args, checkpoint_version, iteration, tokens, universal_checkpoint_info.
  void add_client_state(PyValue::Dict& dict, bool pipeline_names) const;
  // One of the optimizer's groups of parameters.
  PyValue::Dict parameter_group(bool decays, bool experts, const PyValue::List& indices) const;

 private:
  std::int64_t number(const char* name, std::int64_t otherwise) const;
  void add_family_arguments(PyValue::Dict& arguments) const;
  void add_run_arguments(PyValue::Dict& arguments) const;
  std::vector<std::byte> bytes(const MegatronNames::Entry& entry, int rank,
                               const std::string& suffix, DType dtype) const;
  const Tensor& whole(const std::string& name) const;
  PyValue info(bool pipeline_names) const;
  std::pair<double, double> next_rates() const;

  const ModelSource& source_;
  ForeignLayout layout_;
  std::int64_t padded_vocabulary_;
  MegatronNames names_;
  bool release_;
  std::span<const StateTensor> states_;
  // The last tensor that was read: ranks ask for their parts of it one after another.
  mutable std::string last_name_;
  mutable Tensor last_;
};

inline const MegatronExporter::Kind MegatronExporter::Kind::computed{.suffix = "",
                                                                     .is_computed = true};
inline const MegatronExporter::Kind MegatronExporter::Kind::exact{};

}  // namespace bloomery
