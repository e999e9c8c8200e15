// What Megatron's arguments, which its checkpoints carry as a Python namespace, say about the model
// and the run.
#pragma once

#include <optional>

#include "checkpoint/model_record.h"
#include "checkpoint/pickle/torch_value.h"

namespace bloomery {

// The arguments of a run, and what lies beside them in a file.
class MegatronArguments {
 public:
  // `file` is the object of a file with the entries args, iteration, checkpoint_version and so on.
  // An Error when it has no arguments.
  explicit MegatronArguments(const TorchValue& file);

  // `tied` and `family` are what the tensors show.
  ModelRecord model(std::string_view family) const;
  int tensor_ranks() const {
    return static_cast<int>(
        count("tensor_model_parallel_size", count("model_parallel_size", 1)));  // before 2021
  }
  int pipeline_ranks() const { return static_cast<int>(count("pipeline_model_parallel_size", 1)); }
  std::int64_t padded_vocabulary() const { return padded_vocabulary_; }
  int expert_ranks() const { return static_cast<int>(count("moe_expert_parallel_size", 1)); }
  bool cuts_experts() const { return flag("enable_expert_tensor_parallelism"); }
  double checkpoint_version() const { return version_; }
  // Whether the program knew FPDT (Megatron-DeepSpeed since December 2024): the change that brought
  // its arguments also cuts fused queries, keys and values into thirds.
  bool knows_fpdt() const { return arguments_.find("ds_sequence_parallel_fpdt").has_value(); }
  bool fp16() const { return flag("fp16"); }

  // Step, samples, schedule and the options of kRunOptions; `schedule` is the scheduler's state,
  // none: not stored.
  RunState run_state(const std::optional<TorchValue>& schedule) const;

 private:
  std::optional<TorchValue> find(std::string_view name) const;
  std::int64_t count(std::string_view name, std::int64_t otherwise) const;
  bool flag(std::string_view name) const;
  std::string model_json(std::string_view family) const;
  std::string run_json() const;
  std::optional<TokenizerOptions> tokenizer() const;

  TorchValue file_, arguments_;
  double version_ = 0;
  std::int64_t padded_vocabulary_ = 0, vocabulary_ = 0;
};

// What a checkpoint says about the optimizer and its ranks beside the model, by the names of our
// options: whoever goes on from what we write takes it from there.
inline constexpr const char* kRunOptions[] = {"lr",
                                              "weight-decay",
                                              "adam-beta1",
                                              "adam-beta2",
                                              "adam-eps",
                                              "clip-grad",
                                              "loss-scale-window",
                                              "hysteresis",
                                              "min-loss-scale",
                                              "seq-length",
                                              "tensor-model-parallel-size",
                                              "pipeline-model-parallel-size"};
// What Megatron calls the option.
std::string argument_name(std::string_view option);

// Members of RunState::extra that the trainer reads.
void set_optimizer_progress(RunState& state, std::int64_t steps, std::int64_t skipped);

}  // namespace bloomery
