#include "checkpoint/megatron/local_tensors.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/model_record.h"
#include "models/family.h"

namespace bloomery {
namespace {

constexpr std::string_view kEmbedding = "language_model.embedding.";
constexpr std::string_view kCopyForHead = "word_embeddings_for_head.";
constexpr int kMaxDepth = 8;

void flatten(const TorchValue& dict, const std::string& prefix, int depth,
             std::vector<NamedValue>& all) {
  check(depth < kMaxDepth, dict.object().source(), ": ", dict.path(), " is nested too deeply");
  for (const auto& [key, value] : dict.items()) {
    if (value.is_tensor()) {
      all.push_back({prefix + key, value});
    } else if (value.is_dict()) {
      flatten(value, concat(prefix, key, "."), depth + 1, all);
    }
  }
}

// Whether they are of that tensor: at least one of the optimizers' tensors, each of its size.
bool is_state_of(const LocalTensor& tensor, const TorchValue& state) {
  const std::vector<StateValue> values = state_values(state);
  return !values.empty() && std::ranges::all_of(values, [&](const StateValue& each) {
    return each.value.is_tensor() && each.value.tensor().shape.numel() == tensor.size;
  });
}

}  // namespace

LocalTensor LocalNames::place(const std::string& name, std::int64_t size, bool is_matrix,
                              const std::string& file) const {
  LocalTensor tensor{.name = name, .size = size, .is_matrix = is_matrix};
  if (name.starts_with(kCopyForHead)) {
    return tensor;
  }
  const MegatronNames::Entry* entry = names_.find(name);
  check(entry != nullptr, file, ": ", name, " is no tensor of the model that its args describe");
  tensor.is_expert = entry->expert.has_value();
  const bool repeated = entry->cut == MegatronTensor::kWhole && tensor_rank_ > 0;
  std::vector<TensorPart> segments = names_.segments(*entry, tensor_rank_);
  check(num_elements(segments) == size, file, ": ", name, " has ", size, " elements, but ",
        num_elements(segments), " by its args");
  if (!repeated && !(stage_ > 0 && name.starts_with(kEmbedding))) {
    tensor.segments = std::move(segments);
  }
  return tensor;
}

std::vector<NamedValue> flattened(const TorchValue& dict, const std::string& prefix) {
  std::vector<NamedValue> all;
  flatten(dict, prefix, 0, all);
  return all;
}

std::string_view family_of_names(const std::vector<NamedValue>& values) {
  const auto any = [&](std::string_view prefix) {
    return std::ranges::any_of(
        values, [&](const NamedValue& each) { return each.name.starts_with(prefix); });
  };
  const std::vector<const Family*> all = families();
  const auto found = std::ranges::find_if(all, [&](const Family* family) {
    return !family->megatron.own_names.empty() && any(family->megatron.own_names);
  });
  return (found == all.end() ? all.front() : *found)->name;
}

std::vector<const LocalTensor*> in_groups(const std::vector<LocalTensor>& tensors,
                                          bool experts_apart) {
  std::vector<const LocalTensor*> order;
  for (const bool experts : {false, true}) {
    for (const bool decays : {true, false}) {
      for (const LocalTensor& tensor : tensors) {
        if ((tensor.is_matrix && !tensor.name.ends_with(".bias")) == decays &&
            (experts_apart && tensor.is_expert) == experts) {
          order.push_back(&tensor);
        }
      }
    }
  }
  return order;
}

std::vector<StateValue> state_values(const TorchValue& state) {
  std::vector<StateValue> values;
  for (const StateTensor& tensor : every_state_tensor()) {
    if (const auto value = state.find(tensor.foreign)) {
      values.push_back({state_name("", tensor), *value});
    }
  }
  return values;
}

bool add_states_in_order(ForeignParts& parts, const std::vector<const LocalTensor*>& order,
                         const TorchValue& state, const std::optional<TorchValue>& copies) {
  const std::vector<TorchValue::Item> states = state.items();
  if (states.size() != order.size()) {
    return false;
  }
  std::vector<TorchValue> copied;
  if (copies) {
    for (const TorchValue& group : copies->elements()) {
      for (const TorchValue& tensor : group.elements()) {
        copied.push_back(tensor);
      }
    }
    if (copied.size() != order.size()) {
      return false;
    }
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (states[i].key != std::to_string(i) || !is_state_of(*order[i], states[i].value)) {
      return false;
    }
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i]->segments.empty()) {
      continue;
    }
    for (const StateValue& each : state_values(states[i].value)) {
      parts.add(order[i]->segments, each.suffix, each.value);
    }
    if (copies) {
      parts.add(order[i]->segments, "", copied[i]);
    }
  }
  return true;
}

void add_flat(ForeignParts& parts, const std::vector<FlatPart>& places, const std::string& suffix,
              const TorchValue& buffer) {
  for (const FlatPart& place : places) {
    if (!place.tensor->segments.empty() && place.count > 0) {
      parts.add(place.tensor->segments, suffix, buffer, place.first, place.at, place.count);
    }
  }
}

}  // namespace bloomery
