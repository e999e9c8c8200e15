#include <algorithm>
#include <regex>

#include "base/error.h"
#include "checkpoint/megatron/arguments.h"
#include "checkpoint/megatron/foreign.h"
#include "checkpoint/megatron/local_tensors.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModelFile = "model_optim_rng.pt";
constexpr const char* kDistributedFile = "distrib_optim.pt";

// The folders mp_rank_TT or mp_rank_TT_PPP, by [stage][tensor rank].
std::vector<std::vector<std::string>> rank_folders(const fs::path& checkpoint) {
  std::map<std::pair<int, int>, std::string> found;
  static const std::regex kName("mp_rank_([0-9]{2,5})(_([0-9]{3,5}))?");
  for (const auto& item : fs::directory_iterator(checkpoint)) {
    const std::string name = item.path().filename().string();
    std::smatch match;
    if (std::regex_match(name, match, kName)) {
      const int stage = match[3].matched ? std::stoi(match[3]) : 0;
      check(found.emplace(std::pair(stage, std::stoi(match[1])), name).second, checkpoint.string(),
            ": ", name, " is there twice");
    }
  }
  std::vector<std::vector<std::string>> folders;
  for (const auto& [rank, name] : found) {
    folders.resize(std::max(folders.size(), static_cast<std::size_t>(rank.first) + 1));
    folders.back().push_back(name);
    check(rank.second + 1 == static_cast<int>(folders.back().size()), checkpoint.string(), ": ",
          name, " is there, but not the tensor rank before it");
  }
  for (const auto& stage : folders) {
    check(stage.size() == folders[0].size() && !stage.empty(), checkpoint.string(),
          ": some of its folders mp_rank_* are missing");
  }
  return folders;
}

// One chunk of layers of a rank: "model", or "model0" and so on of an interleaved pipeline.
struct Chunk {
  std::vector<NamedValue> values;
  // By stack ("language_model.encoder").
  std::map<std::string, std::int64_t> layers, first_layer;
};

std::string stack_of(const std::string& name) { return name.substr(0, name.find(".layers.")); }

class MegatronFolder {
 public:
  MegatronFolder(const fs::path& checkpoint, const OpenBytes& open, const ForeignReading& how)
      : parts_(checkpoint, open), how_(how), folders_(rank_folders(checkpoint)) {}

  CheckpointReader read() {
    const TorchValue first = parts_.open(folders_[0][0] + "/" + kModelFile);
    const MegatronArguments arguments(first);
    const ModelRecord record = arguments.model(family());
    check(!record.model.moe.any(), first.object().source(),
          ": has experts, which only DeepSpeed's files have a place for");
    const auto count = static_cast<std::int64_t>(first.object().pickle().nodes.size());
    check(Model::num_blocks(record.model) <= 2 * count * static_cast<std::int64_t>(folders_.size()),
          first.object().source(), ": too small for ", record.model.num_layers, " layers");
    const auto tensor = static_cast<int>(folders_[0].size());
    const MegatronNames names(record.model, tensor, arguments.padded_vocabulary(),
                              qkv_order(arguments.checkpoint_version(), arguments.knows_fpdt(),
                                        how_, first.object().source()));
    for (int rank = 0; rank < tensor; ++rank) {
      read_tensor_rank(names, rank);
    }
    add_weights();
    const auto schedule = first.find("opt_param_scheduler") ? first.find("opt_param_scheduler")
                                                            : first.find("lr_scheduler");
    RunState state = arguments.run_state(schedule);
    add_optimizer(state, first);
    set_model_record(state, record);
    return parts_.finish(std::move(state), names);
  }

 private:
  struct Rank {
    std::vector<LocalTensor> tensors;
    std::vector<NamedValue> values;
    bool has_copies = false;  // the optimizer's fp32 weights were added
  };

  std::string_view family() {
    std::vector<NamedValue> all;
    for (const auto& folders : folders_) {
      for (const Chunk& chunk : chunks(parts_.open(folders[0] + "/" + kModelFile))) {
        all.insert(all.end(), chunk.values.begin(), chunk.values.end());
      }
    }
    return family_of_names(all);
  }

  void read_tensor_rank(const MegatronNames& names, int rank) {
    std::vector<std::vector<Chunk>> stages;
    for (const auto& folders : folders_) {
      stages.push_back(
          chunks(parts_.open(folders[static_cast<std::size_t>(rank)] + "/" + kModelFile)));
    }
    number_layers(stages);
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      Rank local;
      const LocalNames place(names, rank, static_cast<int>(stage));
      const std::string& folder = folders_[stage][static_cast<std::size_t>(rank)];
      std::vector<std::size_t> chunk_sizes;
      for (Chunk& chunk : stages[stage]) {
        chunk_sizes.push_back(chunk.values.size());
        for (NamedValue& each : chunk.values) {
          if (const auto layer = layer_of_name(each.name)) {
            each.name = with_layer(each.name, *layer + chunk.first_layer[stack_of(each.name)]);
          }
          const Shape shape = each.value.tensor().shape;
          local.tensors.push_back(place.place(each.name, shape.numel(), shape.rank() > 1, folder));
          local.values.push_back(each);
        }
      }
      read_states(local, folder, chunk_sizes);
      ranks_.push_back(std::move(local));
    }
  }

  static std::vector<Chunk> chunks(const TorchValue& file) {
    std::vector<Chunk> chunks;
    for (std::size_t i = 0;; ++i) {
      auto model = file.find(concat("model", i));
      model = model || i > 0 ? model : file.find("model");
      if (!model) {
        break;
      }
      Chunk chunk{.values = flattened(*model)};
      for (NamedValue& each : chunk.values) {
        each.name = current_name(std::move(each.name));
        if (const auto layer = layer_of_name(each.name)) {
          std::int64_t& layers = chunk.layers[stack_of(each.name)];
          layers = std::max(layers, *layer + 1);
        }
      }
      // Parameters are in this order: what the head has of its own comes behind its embedding.
      std::ranges::stable_sort(chunk.values, {}, [](const NamedValue& each) {
        return each.name.starts_with("language_model.")             ? 0
               : each.name.starts_with("word_embeddings_for_head.") ? 1
                                                                    : 2;
      });
      chunks.push_back(std::move(chunk));
    }
    check(!chunks.empty(), file.object().source(), ": has no model");
    return chunks;
  }

  // The first chunks of all stages come before the second ones.
  static void number_layers(std::vector<std::vector<Chunk>>& stages) {
    std::map<std::string, std::int64_t> next;
    for (std::size_t i = 0; i < stages[0].size(); ++i) {
      for (auto& stage : stages) {
        check(stage.size() == stages[0].size(), "the stages have different numbers of chunks");
        stage[i].first_layer = next;
        for (const auto& [stack, layers] : stage[i].layers) {
          next[stack] += layers;
        }
      }
    }
  }

  void read_states(Rank& local, const std::string& folder,
                   const std::vector<std::size_t>& chunk_sizes) {
    const auto optimizer = parts_.open(folder + "/" + kModelFile).find("optimizer");
    if (fs::exists(parts_.folder() / folder / kDistributedFile)) {
      read_distributed(local, folder, chunk_sizes);
      return;
    }
    if (!optimizer || !optimizer->is_dict()) {
      return;
    }
    const auto inner = optimizer->find("optimizer");
    const auto copies = optimizer->find("fp32_from_fp16_params");
    const auto state = (inner ? *inner : *optimizer).find("state");
    const bool added = state && state->is_dict() &&
                       add_states_in_order(parts_, in_groups(local.tensors, false), *state, copies);
    local.has_copies = added && copies;
  }

  // One buffer of everything in a chunk, the last parameter first.
  void read_distributed(Rank& local, const std::string& folder,
                        const std::vector<std::size_t>& chunk_sizes) {
    const TorchValue file = parts_.open(folder + "/" + kDistributedFile);
    std::size_t begin = 0;
    for (std::size_t chunk = 0; chunk < chunk_sizes.size(); ++chunk) {
      const std::vector<TorchValue::Item> types = file.at(std::to_string(chunk)).items();
      check(types.size() == 1, file.object().source(), ": has buffers of several types");
      std::vector<FlatPart> places;
      std::int64_t at = 0;
      for (std::size_t i = begin + chunk_sizes[chunk]; i-- > begin;) {
        places.push_back({&local.tensors[i], 0, at, local.tensors[i].size});
        at += local.tensors[i].size;
      }
      begin += chunk_sizes[chunk];
      add_flat(parts_, places, "", types[0].value.at("param"));
      const std::vector<StateValue> state = state_values(types[0].value);
      check(!state.empty(), file.object().source(), ": has no state of an optimizer");
      for (const StateValue& each : state) {
        add_flat(parts_, places, each.suffix, each.value);
      }
    }
    local.has_copies = true;
  }

  // The model's own weights, where the optimizer has no more exact ones.
  void add_weights() {
    for (const Rank& rank : ranks_) {
      for (std::size_t i = 0; i < rank.tensors.size(); ++i) {
        if (!rank.has_copies && !rank.tensors[i].segments.empty()) {
          parts_.add(rank.tensors[i].segments, "", rank.values[i].value);
        }
      }
    }
  }

  static void add_optimizer(RunState& state, const TorchValue& file) {
    const auto optimizer = file.find("optimizer");
    if (!optimizer || !optimizer->is_dict()) {
      return;
    }
    if (const auto scaler = optimizer->find("grad_scaler"); scaler && scaler->find("scale")) {
      state.loss_scale.scale = scaler->at("scale").real();
      const auto tracker = scaler->find("growth_tracker"),
                 left = scaler->find("hysteresis_tracker");
      state.loss_scale.clean_steps = tracker ? tracker->integer() : 0;
      state.loss_scale.tolerance_left = left ? left->integer() : 0;
    }
    const auto inner = optimizer->find("optimizer");
    const TorchValue& states = inner ? *inner : *optimizer;
    std::int64_t steps = state.step;
    if (const auto groups = states.find("param_groups"); groups && !groups->elements().empty()) {
      const auto step = groups->elements()[0].find("step");  // where apex counts
      steps = step ? step->integer() : steps;
    }
    if (const auto each = states.find("state"); each && each->find("0")) {
      const auto step = each->at("0").find("step");
      steps = step ? step->integer() : steps;
    }
    set_optimizer_progress(state, steps, std::max<std::int64_t>(0, state.step - steps));
  }

  ForeignParts parts_;
  const ForeignReading& how_;
  std::vector<std::vector<std::string>> folders_;
  std::vector<Rank> ranks_;
};

}  // namespace

CheckpointReader open_megatron(const fs::path& checkpoint, const OpenBytes& open,
                               const ForeignReading& how) {
  return MegatronFolder(checkpoint, open, how).read();
}

}  // namespace bloomery
