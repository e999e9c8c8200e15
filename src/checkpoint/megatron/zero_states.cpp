#include "checkpoint/megatron/zero_states.h"

#include <algorithm>
#include <deque>

#include "base/error.h"
#include "checkpoint/megatron/arguments.h"
#include "checkpoint/model_record.h"

namespace bloomery {
namespace {

// The base optimizer's state of a group: under "state", or in a list.
std::optional<TorchValue> group_state(const TorchValue& base, std::size_t group) {
  if (base.is_dict()) {
    const auto state = base.find("state");
    return state ? state->find(std::to_string(group)) : std::nullopt;
  }
  const std::vector<TorchValue> groups = base.elements();
  return group < groups.size() ? std::optional(groups[group]) : std::nullopt;
}

void add_base_state(ForeignParts& parts, const std::vector<FlatPart>& places,
                    const std::optional<TorchValue>& state) {
  for (const StateValue& each : state ? state_values(*state) : std::vector<StateValue>()) {
    if (each.value.is_tensor()) {
      add_flat(parts, places, each.suffix, each.value);
    }
  }
}

std::int64_t numel_of_shape(const TorchValue& shape) {
  std::int64_t count = 1;
  for (const TorchValue& extent : shape.elements()) {
    check(extent.integer() >= 0 && !__builtin_mul_overflow(count, extent.integer(), &count),
          shape.object().source(), ": ", shape.path(), " is no shape");
  }
  return count;
}

struct NamedSize {
  std::string name;
  std::int64_t size;
};

// Of the groups of a rank, in the order in which they are flattened.
std::vector<std::vector<NamedSize>> parameter_shapes(const TorchValue& model) {
  std::vector<std::vector<NamedSize>> groups;
  const auto shapes = model.find("param_shapes");
  check(shapes && !shapes->is_none(), model.object().source(),
        ": has no param_shapes, without which the optimizer's buffers have no names");
  for (const TorchValue& group : shapes->elements()) {
    groups.emplace_back();
    for (const auto& [name, shape] : group.items()) {
      groups.back().push_back({name, numel_of_shape(shape)});
    }
  }
  return groups;
}

// Stages 1 and 2, and the bf16 optimizer: each group is one buffer, cut over the ranks.
class FlatGroups {
 public:
  FlatGroups(ForeignParts& parts, const std::vector<TorchValue>& files, const TorchValue& model,
             const FindTensor& find)
      : parts_(parts), files_(files), model_(model), find_(find) {}

  void add() {
    for (const TorchValue& file : files_) {
      states_.push_back(file.at("optimizer_state_dict"));
    }
    const std::size_t groups = states_[0].at("single_partition_of_fp32_groups").elements().size();
    const bool named = states_[0].find("param_slice_mappings").has_value();
    const auto shapes = named ? std::vector<std::vector<NamedSize>>() : parameter_shapes(model_);
    for (std::size_t group = 0; group < groups; ++group) {
      std::vector<std::vector<FlatPart>> places;
      if (named) {
        places = by_mappings(group);
      } else {
        check(group < shapes.size(), model_.object().source(), ": param_shapes has too few groups");
        places = by_shapes(group, shapes[group]);
      }
      for (std::size_t rank = 0; rank < states_.size(); ++rank) {
        add_flat(parts_, places[rank], "", partition(rank, group));
        const auto base = states_[rank].find("base_optimizer_state");
        add_base_state(parts_, places[rank], base ? group_state(*base, group) : std::nullopt);
      }
    }
  }

 private:
  TorchValue partition(std::size_t rank, std::size_t group) const {
    const auto all = states_[rank].at("single_partition_of_fp32_groups").elements();
    check(group < all.size(), files_[rank].object().source(), ": has too few groups");
    return all[group];
  }

  const LocalTensor* tensor(const std::string& name, std::int64_t size) {
    std::optional<LocalTensor> found = find_(name, size);
    return found ? &tensors_.emplace_back(std::move(*found)) : nullptr;
  }

  // Each rank says which parameters it has a part of, and where.
  std::vector<std::vector<FlatPart>> by_mappings(std::size_t group) {
    struct Fragment {
      std::size_t rank;
      std::int64_t start, count;
    };
    std::vector<std::string> order;
    std::map<std::string, std::vector<Fragment>> fragments;
    for (std::size_t rank = 0; rank < states_.size(); ++rank) {
      const auto mappings = states_[rank].at("param_slice_mappings").elements();
      check(group < mappings.size(), files_[rank].object().source(), ": has too few groups");
      for (const auto& [name, place] : mappings[group].items()) {
        fragments[name].push_back({rank, place.at("start").integer(), place.at("numel").integer()});
      }
    }
    std::vector<std::vector<FlatPart>> places(states_.size());
    for (const auto& [name, parts] : fragments) {
      std::int64_t size = 0, done = 0;
      for (const Fragment& part : parts) {
        check(part.count >= 0 && !__builtin_add_overflow(size, part.count, &size),
              files_[part.rank].object().source(), ": ", name, " has a part of ", part.count,
              " elements");
      }
      const LocalTensor* whole = tensor(name, size);
      for (const Fragment& part : whole != nullptr ? parts : std::vector<Fragment>()) {
        places[part.rank].push_back({whole, done, part.start, part.count});
        done += part.count;
      }
    }
    return places;
  }

  // The ranks' buffers one after another are the parameters one after another.
  std::vector<std::vector<FlatPart>> by_shapes(std::size_t group,
                                               const std::vector<NamedSize>& parameters) {
    std::vector<std::vector<FlatPart>> places(states_.size());
    std::vector<std::int64_t> begins{0};
    for (std::size_t rank = 0; rank < states_.size(); ++rank) {
      begins.push_back(begins.back() + partition(rank, group).tensor().shape.numel());
    }
    std::int64_t at = 0;
    for (const NamedSize& parameter : parameters) {
      const LocalTensor* whole = tensor(parameter.name, parameter.size);
      for (std::size_t rank = 0; rank < states_.size(); ++rank) {
        const std::int64_t from = std::max(at, begins[rank]),
                           to = std::min(at + parameter.size, begins[rank + 1]);
        if (from < to && whole != nullptr) {
          places[rank].push_back({whole, from - at, from - begins[rank], to - from});
        }
      }
      at += parameter.size;
    }
    return places;
  }

  ForeignParts& parts_;
  const std::vector<TorchValue>& files_;
  const TorchValue& model_;
  const FindTensor& find_;
  std::vector<TorchValue> states_;
  std::deque<LocalTensor> tensors_;
};

// Stage 3: each parameter is cut over the ranks for itself; a rank's parts follow each other in
// its buffers.
void add_stage_3(ForeignParts& parts, const std::vector<TorchValue>& files, const TorchValue& model,
                 const FindTensor& find) {
  const auto ranks = static_cast<std::int64_t>(files.size());
  std::vector<std::pair<LocalTensor, std::int64_t>> tensors;  // and elements per rank
  for (const auto& group : parameter_shapes(model)) {
    for (const NamedSize& parameter : group) {
      tensors.emplace_back(find(parameter.name, parameter.size).value(),
                           (parameter.size + ranks - 1) / ranks);
    }
  }
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const TorchValue state = files[static_cast<std::size_t>(rank)].at("optimizer_state_dict");
    const std::vector<TorchValue> buffers = state.at("fp32_flat_groups").elements();
    const auto base = state.find("optimizer_state_dict");
    std::size_t next = 0;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const std::int64_t room = buffers[i].tensor().shape.numel();
      std::vector<FlatPart> places;
      for (std::int64_t at = 0; next < tensors.size(); ++next) {
        const auto& [tensor, share] = tensors[next];
        if (share > room - at) {
          break;
        }
        const std::int64_t first = std::min(rank * share, tensor.size);
        places.push_back({&tensor, first, at, std::min(share, tensor.size - first)});
        at += share;
      }
      add_flat(parts, places, "", buffers[i]);
      add_base_state(parts, places, base ? group_state(*base, i) : std::nullopt);
    }
    check(next == tensors.size(), state.object().source(), ": its buffers end before parameter ",
          next, " of ", tensors.size());
  }
}

bool experts_apart(const TorchValue& optimizer) {
  const auto groups = optimizer.find("param_groups");
  if (!groups || !groups->is_sequence()) {
    return false;
  }
  return std::ranges::any_of(groups->elements(), [](const TorchValue& group) {
    const auto moe = group.is_dict() ? group.find("moe") : std::nullopt;
    return moe && moe->kind() == PickleNode::Kind::boolean && moe->flag();
  });
}

}  // namespace

void add_zero_states(ForeignParts& parts, const std::vector<TorchValue>& files,
                     const TorchValue& model, const FindTensor& find) {
  const TorchValue state = files.at(0).at("optimizer_state_dict");
  if (state.find("fp32_flat_groups")) {
    add_stage_3(parts, files, model, find);
  } else {
    FlatGroups(parts, files, model, find).add();
  }
}

bool add_plain_states(ForeignParts& parts, const TorchValue& optimizer,
                      const std::vector<LocalTensor>& tensors) {
  const auto inner = optimizer.find("optimizer_state_dict");
  const auto state = (inner ? *inner : optimizer).find("state");
  if (!state || !state->is_dict()) {
    return false;
  }
  const auto flat = optimizer.find("fp32_groups_flat");
  if (!flat) {
    return add_states_in_order(parts, in_groups(tensors, experts_apart(inner ? *inner : optimizer)),
                               *state, optimizer.find("fp32_groups"));
  }
  std::vector<std::vector<FlatPart>> groups;
  const auto kind = [](const LocalTensor& tensor) {
    return std::pair(tensor.is_expert, tensor.is_matrix && !tensor.name.ends_with(".bias"));
  };
  for (const LocalTensor* tensor : in_groups(tensors, true)) {
    if (groups.empty() || kind(*groups.back().back().tensor) != kind(*tensor)) {
      groups.emplace_back();
    }
    const std::int64_t at =
        groups.back().empty() ? 0 : groups.back().back().at + groups.back().back().count;
    groups.back().push_back({tensor, 0, at, tensor->size});
  }
  const std::vector<TorchValue> buffers = flat->elements();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers.size() != groups.size() ||
        buffers[i].tensor().shape.numel() < groups[i].back().at + groups[i].back().count) {
      return false;
    }
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    add_flat(parts, groups[i], "", buffers[i]);
    add_base_state(parts, groups[i], group_state(*inner, i));
  }
  return true;
}

void read_optimizer_progress(RunState& state, const TorchValue& optimizer,
                             const TorchValue& model) {
  std::int64_t steps = state.step;
  for (const char* key : {"base_optimizer_state", "optimizer_state_dict"}) {
    const auto base = optimizer.find(key);
    const auto first =
        base && (base->is_dict() || base->is_sequence()) ? group_state(*base, 0) : std::nullopt;
    const auto step = first ? first->find("step") : std::nullopt;
    steps = step && !step->is_none() ? step->integer() : steps;
  }
  const auto skipped = model.find("skipped_steps");
  set_optimizer_progress(state, steps, skipped && !skipped->is_none() ? skipped->integer() : 0);
  // A scaler of its own, or its numbers beside the rest.
  const auto own = optimizer.find("loss_scaler");
  const TorchValue& scaler = own && own->attributes() ? *own : optimizer;
  if (const auto scale = scaler.find("cur_scale")) {
    state.loss_scale.scale = scale->real();
    const auto now = scaler.find("cur_iter"), last = scaler.find("last_overflow_iter"),
               window = scaler.find("scale_window"), left = scaler.find("cur_hysteresis");
    if (now && last) {
      const std::int64_t clean = std::max<std::int64_t>(0, now->integer() - last->integer() - 1);
      state.loss_scale.clean_steps =
          clean % std::max<std::int64_t>(1, window ? window->integer() : 1000);
    }
    state.loss_scale.tolerance_left = left ? left->integer() : 1;
  }
}

}  // namespace bloomery
