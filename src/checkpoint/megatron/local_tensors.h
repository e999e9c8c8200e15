// The tensors of one model-parallel rank in a checkpoint of Megatron or DeepSpeed, and the states
// of the optimizer that belong to them.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/megatron/parts.h"

namespace bloomery {

struct LocalTensor {
  std::string name;                  // without pipeline
  std::int64_t size = 0;             // elements
  bool is_matrix = false;            // of rank 2 or more: its weights decay
  bool is_expert = false;            // which no rank has that has not this expert
  std::vector<TensorPart> segments;  // empty: another rank has the same
};

// Where what a rank has goes, by names without pipeline.
class LocalNames {
 public:
  // Of stages behind the first that hold the embedding once more, that copy is left out.
  LocalNames(const MegatronNames& names, int tensor_rank, int stage)
      : names_(names), tensor_rank_(tensor_rank), stage_(stage) {}

  // An Error when there is no such tensor, or it has not the size that the model asks for.
  LocalTensor place(const std::string& name, std::int64_t size, bool is_matrix,
                    const std::string& file) const;

 private:
  const MegatronNames& names_;
  int tensor_rank_, stage_;
};

// All tensors of nested dicts with their names, in order. `prefix` is put before them.
struct NamedValue {
  std::string name;
  TorchValue value;
};
std::vector<NamedValue> flattened(const TorchValue& dict, const std::string& prefix = "");

// The family that a model with tensors of these names is of; the default one if no name is a
// family's own.
std::string_view family_of_names(const std::vector<NamedValue>& values);

// In the order of an optimizer's groups: those that decay first; then experts, if they have groups
// of their own.
std::vector<const LocalTensor*> in_groups(const std::vector<LocalTensor>& tensors,
                                          bool experts_apart);

// Of a dictionary the tensors of an optimizer's state, with the end of their names in our
// checkpoints.
struct StateValue {
  std::string suffix;
  TorchValue value;
};
std::vector<StateValue> state_values(const TorchValue& state);

// The states of an optimizer whose parameters are known by their order alone: `state` with one
// entry per parameter, and the fp32 copies in the same groups, if there are any. False: they are
// not those of these tensors, and nothing was added.
bool add_states_in_order(ForeignParts& parts, const std::vector<const LocalTensor*>& order,
                         const TorchValue& state, const std::optional<TorchValue>& copies);

// One flat buffer: weights, or a tensor of the state, of tensors that follow each other in it.
struct FlatPart {
  const LocalTensor* tensor;
  std::int64_t first = 0;  // element of the tensor
  std::int64_t at = 0;     // element of the buffer
  std::int64_t count = 0;
};
void add_flat(ForeignParts& parts, const std::vector<FlatPart>& places, const std::string& suffix,
              const TorchValue& buffer);

}  // namespace bloomery
