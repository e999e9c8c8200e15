#include <algorithm>
#include <set>

#include "base/error.h"
#include "checkpoint/megatron/arguments.h"
#include "checkpoint/megatron/deepspeed_files.h"
#include "checkpoint/megatron/foreign.h"
#include "checkpoint/megatron/zero_states.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDataBeforeExperts = "use_data_before_expert_parallelism";

class DeepSpeedFolder {
 public:
  DeepSpeedFolder(const fs::path& checkpoint, const OpenBytes& open, const ForeignReading& how)
      : parts_(checkpoint, open), how_(how), files_(list_deepspeed_files(checkpoint)) {}

  CheckpointReader read() {
    const TorchValue first = parts_.open(files_.models.at(0));
    const MegatronArguments arguments(first);
    const ModelRecord record = arguments.model(family(first));
    const MegatronNames names = layout(arguments, record.model, first);
    RunState state = arguments.run_state(first.find("lr_scheduler"));
    if (files_.universal) {
      read_universal(names);
      progress_ = universal_state();
    } else {
      read_expert_files(names);
      for (int stage = 0; stage < stages_; ++stage) {
        read_stage(names, stage);
      }
      add_weights();
    }
    if (progress_) {
      read_optimizer_progress(state, *progress_, first);
    }
    if (universal_steps_) {
      state.extra["optimizer_steps"] = std::to_string(*universal_steps_);
    }
    if (record.dtype != DType::fp16) {
      state.loss_scale = {};  // scalers without a meaning
    }
    set_model_record(state, record);
    const std::vector<std::string> absent = absent_layers(first);
    CheckpointReader whole = parts_.finish(std::move(state), names, absent);
    for (const std::string& file : absent) {
      how_.log.warning(parts_.folder().string(), ": ", file,
                       " is missing; what it holds is taken from the optimizer's exact weights");
    }
    return whole;
  }

 private:
  struct Weight {
    LocalTensor tensor;
    TorchValue value;
  };

  // Files of the pipeline's layers that should be there.
  std::vector<std::string> absent_layers(const TorchValue& first) const {
    const auto module = first.find("module");
    if (files_.universal || (module && module->is_dict())) {
      return {};
    }
    std::vector<std::string> absent;
    for (std::int64_t layer = 0; layer < std::ssize(num_experts_); ++layer) {
      for (int rank = 0; rank < tensor_; ++rank) {
        const std::int64_t number = layer + kFirstPipelineLayer;
        if (!files_.layers.contains({static_cast<int>(number), rank})) {
          absent.push_back(layer_file(number, rank));
        }
      }
    }
    return absent;
  }

  static std::string_view family(const TorchValue& first) {
    const auto module = first.find("module");
    return family_of_names(module && module->is_dict() ? flattened(*module)
                                                       : std::vector<NamedValue>());
  }

  MegatronNames layout(const MegatronArguments& arguments, const ModelOptions& model,
                       const TorchValue& first) {
    const std::string& file = first.object().source();
    tensor_ = files_.universal ? 1 : arguments.tensor_ranks();
    const auto ranks = static_cast<int>(files_.models.size());
    check(tensor_ > 0 && (files_.universal || ranks % tensor_ == 0), file, ": its args say ",
          tensor_, " tensor ranks, but there are files of ", ranks, " model-parallel ranks");
    constexpr std::int64_t kMostLayers = 100000;
    check(model.num_layers <= kMostLayers && Model::num_blocks(model) <= 2 * kMostLayers, file,
          ": ", Model::num_blocks(model), " layers");
    std::int64_t experts = 0;
    for (std::int64_t layer = 0; layer < model.num_layers; ++layer) {
      num_experts_.push_back(model.moe.experts_of(layer));
      experts += num_experts_.back() > 1 ? num_experts_.back() : 0;
      check(experts <= std::ssize(files_.experts), file, ": its args say more experts than the ",
            files_.experts.size(), " that there are files of");
    }
    stages_ = std::max(1, ranks / tensor_);
    tied_ = !model.vocabulary.untied;
    expert_ranks_ = arguments.expert_ranks();
    check(expert_ranks_ > 0, file, ": ", expert_ranks_, " expert ranks");
    const auto config = first.find("ds_config");
    const auto order =
        config && config->is_dict() ? config->find(kDataBeforeExperts) : std::nullopt;
    check(!order || order->kind() != PickleNode::Kind::boolean || !order->flag(), file, ": with ",
          kDataBeforeExperts, " the order of experts is not known; save it without");
    cuts_experts_ = arguments.cuts_experts();
    constexpr double kVersion = 3;  // of all that DeepSpeed wrote, whatever the file says
    return {model,
            tensor_,
            files_.universal ? model.vocabulary.size : arguments.padded_vocabulary(),
            qkv_order(kVersion, arguments.knows_fpdt(), how_, file),
            cuts_experts_,
            files_.universal ? std::max(1, arguments.tensor_ranks()) : 1};
  }

  void read_stage(const MegatronNames& names, int stage) {
    for (int rank = 0; rank < tensor_; ++rank) {
      const LocalNames local(names, rank, stage);
      const TorchValue model = parts_.open(files_.models.at(stage * tensor_ + rank));
      const std::vector<Weight> weights = weights_of(model, local, stage, rank);
      read_states(model, weights, local, stage, rank);
      weights_.insert(weights_.end(), weights.begin(), weights.end());
    }
    if (!files_.optimizers.empty() && !experts_.empty()) {
      read_states_of_experts(names, stage);
    }
  }

  void read_states(const TorchValue& model, const std::vector<Weight>& weights,
                   const LocalNames& local, int stage, int rank) {
    const int place = stage * tensor_ + rank;
    if (files_.optimizers.contains(place)) {
      std::vector<TorchValue> optimizers;
      for (const auto& [data, name] : files_.optimizers.at(place)) {
        optimizers.push_back(parts_.open(name));
      }
      add_zero_states(parts_, optimizers, model, [&](const std::string& name, std::int64_t size) {
        return expert_of_name(name) ? std::nullopt
                                    : std::optional(local.place(plain_name(name), size, false,
                                                                model.object().source()));
      });
      progress_ = progress_ ? progress_ : optimizers[0].at("optimizer_state_dict");
      return;
    }
    std::vector<LocalTensor> tensors;
    for (const Weight& weight : weights) {
      tensors.push_back(weight.tensor);
    }
    if (files_.expert_optimizers.contains(place)) {
      for (const auto& [expert_rank, name] : files_.expert_optimizers.at(place)) {
        read_plain_states_with_experts(parts_.open(name).at("optimizer"), tensors, stage, rank,
                                       expert_rank);
        for (LocalTensor& tensor : tensors) {
          tensor.segments.clear();  // the next file has the same once more
        }
      }
    } else if (const auto optimizer = model.find("optimizer"); optimizer && optimizer->is_dict()) {
      add_plain_states(parts_, *optimizer, tensors);
      progress_ = progress_ ? progress_ : optimizer;
    }
  }

  // In the order of the module's parameters.
  std::vector<Weight> weights_of(const TorchValue& model, const LocalNames& local, int stage,
                                 int rank) {
    std::vector<Weight> weights;
    const auto add = [&](const std::string& name, const TorchValue& value) {
      const TorchTensor tensor = value.tensor();
      // Of stage 3 nothing is left here; experts have files of their own.
      if (tensor.shape.numel() > 0 && !expert_of_name(name)) {
        weights.push_back({local.place(name, tensor.shape.numel(), tensor.shape.rank() > 1,
                                       value.object().source()),
                           value});
      }
    };
    if (const auto module = model.find("module"); module && module->is_dict()) {
      for (const NamedValue& each : flattened(*module)) {
        add(plain_name(each.name), each.value);
      }
      return weights;
    }
    if (stage > 0 && stage == stages_ - 1 && tied_ && files_.layers.contains({1, rank})) {
      add_layer(1, rank, add);  // its copy of the embedding
    }
    for (const auto& [place, name] : files_.layers) {
      if (place.second == rank && stage_of_layer(place.first - 2) == stage) {
        add_layer(place.first, rank, add);
      }
    }
    return weights;
  }

  template <class Add>
  void add_layer(int layer, int rank, const Add& add) {
    for (const NamedValue& each : flattened(parts_.open(files_.layers.at({layer, rank})))) {
      add(name_of_pipeline_layer(layer, each.name), each.value);
    }
  }

  static std::string plain_name(const std::string& name) {
    return current_name(name_of_pipeline_parameter(name));
  }

  // Each expert once, whichever ranks have written it.
  void read_expert_files(const MegatronNames& names) {
    std::set<std::pair<std::string, int>> seen;
    for (const DeepSpeedFiles::Expert& file : files_.experts) {
      const int rank = cuts_experts_ ? file.model_rank % tensor_ : 0;
      const LocalNames local(names, rank, 0);
      for (const NamedValue& each : flattened(parts_.open(file.name))) {
        const std::string name = plain_name(each.name);
        const Shape shape = each.value.tensor().shape;
        const LocalTensor tensor =
            local.place(name, shape.numel(), shape.rank() > 1, each.value.object().source());
        check(tensor.is_expert, each.value.object().source(), ": ", each.name, " is of no expert");
        if (seen.emplace(name, rank).second) {
          experts_[rank].push_back(tensor);
          weights_.push_back({tensor, each.value});
        }
      }
    }
    for (auto& [rank, tensors] : experts_) {
      std::ranges::stable_sort(tensors, {}, [](const LocalTensor& tensor) {
        return std::pair(*layer_of_name(tensor.name), *expert_of_name(tensor.name));
      });
    }
  }

  // What a rank calls its expert `local` is this one of all.
  std::int64_t global_expert(const std::string& name, std::int64_t local, int expert_rank,
                             const std::string& file) const {
    const auto layer = layer_of_name(name);
    check(layer && *layer < std::ssize(num_experts_), file, ": ", name, " is of no layer");
    const std::int64_t all = num_experts_[static_cast<std::size_t>(*layer)];
    check(all % expert_ranks_ == 0 && local < all / expert_ranks_, file, ": ", name, ", but ", all,
          " experts are divided by ", expert_ranks_, " ranks");
    return expert_rank * (all / expert_ranks_) + local;
  }

  // With ZeRO the ranks that have the same experts divide their states. Ranks are counted with the
  // tensor ranks first, unless these divide the experts themselves.
  void read_states_of_experts(const MegatronNames& names, int stage) {
    const auto data_ranks = static_cast<int>(files_.optimizers.begin()->second.size());
    const int ranks = cuts_experts_ ? data_ranks : data_ranks * tensor_;
    check(expert_ranks_ > 0 && ranks % expert_ranks_ == 0, parts_.folder().string(), ": ", ranks,
          " ranks cannot be divided into expert-parallel groups of ", expert_ranks_);
    for (int rank = 0; rank < (cuts_experts_ ? tensor_ : 1); ++rank) {
      const LocalNames local(names, rank, stage);
      for (int expert_rank = 0; expert_rank < expert_ranks_; ++expert_rank) {
        std::vector<TorchValue> optimizers;
        for (int i = expert_rank; i < ranks; i += expert_ranks_) {
          const int place = stage * tensor_ + (cuts_experts_ ? rank : i % tensor_);
          optimizers.push_back(
              parts_.open(files_.optimizers.at(place).at(cuts_experts_ ? i : i / tensor_)));
        }
        const std::string& file = optimizers[0].object().source();
        const auto find = [&](const std::string& name,
                              std::int64_t size) -> std::optional<LocalTensor> {
          const auto expert = expert_of_name(name);
          if (!expert) {
            return std::nullopt;
          }
          const std::string plain = plain_name(name);
          return local.place(with_expert(plain, global_expert(plain, *expert, expert_rank, file)),
                             size, false, file);
        };
        add_zero_states(parts_, optimizers, parts_.open(files_.models.at(stage * tensor_ + rank)),
                        find);
      }
    }
  }

  // Without ZeRO a file has the states of everything that the rank holds.
  void read_plain_states_with_experts(const TorchValue& optimizer, std::vector<LocalTensor> tensors,
                                      int stage, int rank, int expert_rank) {
    progress_ = progress_ ? progress_ : optimizer;
    const bool first =
        read_expert_ranks_.emplace(stage, cuts_experts_ ? rank : 0, expert_rank).second;
    for (const LocalTensor& each : experts_[cuts_experts_ ? rank : 0]) {
      const std::int64_t layer = *layer_of_name(each.name);
      const std::int64_t held =
          num_experts_[static_cast<std::size_t>(layer)] / std::max(1, expert_ranks_);
      if (stage_of_layer(layer) == stage && held > 0 &&
          *expert_of_name(each.name) / held == expert_rank) {
        tensors.push_back(each);
        if (!first) {
          tensors.back().segments.clear();
        }
      }
    }
    add_plain_states(parts_, optimizer, tensors);
  }

  // DeepSpeed gives each stage the same number of transformer layers.
  int stage_of_layer(std::int64_t layer) const {
    const std::int64_t layers = std::ssize(num_experts_);
    return static_cast<int>(std::clamp<std::int64_t>(layer, 0, layers - 1) * stages_ / layers);
  }

  void add_weights() {
    std::set<std::string> covered;
    for (const Weight& weight : weights_) {
      if (!weight.tensor.segments.empty() && parts_.contains(weight.tensor.segments[0].tensor)) {
        covered.insert(weight.tensor.name);
      }
    }
    for (const Weight& weight : weights_) {
      if (!covered.contains(weight.tensor.name) && !weight.tensor.segments.empty()) {
        parts_.add(weight.tensor.segments, "", weight.value);
      }
    }
  }

  // zero/PARAMETER/fp32.pt and the tensors of the state (exp_avg.pt), each whole and without
  // padding.
  void read_universal(const MegatronNames& names) {
    const LocalNames local(names, 0, 0);
    for (const auto& item : fs::directory_iterator(parts_.folder() / "zero")) {
      if (!item.is_directory()) {
        continue;
      }
      const std::string parameter = item.path().filename().string();
      std::vector<std::pair<std::string, std::string>> files = {{"fp32.pt", ""}};
      for (const StateTensor& tensor : every_state_tensor()) {
        files.emplace_back(concat(tensor.foreign, ".pt"), state_name("", tensor));
      }
      for (const auto& [file, suffix] : files) {
        if (!fs::exists(item.path() / file)) {
          continue;
        }
        const TorchValue object = parts_.open(concat("zero/", parameter, "/", file));
        const TorchValue value = object.is_tensor() ? object : object.at("param");
        const TorchTensor tensor = value.tensor();
        const LocalTensor place =
            local.place(current_name(name_of_pipeline_parameter(parameter)), tensor.shape.numel(),
                        tensor.shape.rank() > 1, value.object().source());
        parts_.add(place.segments, suffix, value);
      }
      if (!universal_steps_ && fs::exists(item.path() / "step.pt")) {
        universal_steps_ = parts_.open(concat("zero/", parameter, "/step.pt")).integer();
      }
    }
  }

  std::optional<TorchValue> universal_state() {
    const char* const name = "zero/optimizer_state.pt";
    return fs::exists(parts_.folder() / name) ? std::optional(parts_.open(name)) : std::nullopt;
  }

  ForeignParts parts_;
  const ForeignReading& how_;
  DeepSpeedFiles files_;
  int tensor_ = 1, stages_ = 1, expert_ranks_ = 1;
  bool tied_ = false, cuts_experts_ = false;
  std::vector<std::int64_t> num_experts_;  // of each layer
  std::vector<Weight> weights_;
  std::map<int, std::vector<LocalTensor>> experts_;  // by tensor rank, in order
  std::set<std::tuple<int, int, int>> read_expert_ranks_;
  std::optional<TorchValue> progress_;  // of the optimizer
  std::optional<std::int64_t> universal_steps_;
};

}  // namespace

CheckpointReader open_deepspeed(const fs::path& checkpoint, const OpenBytes& open,
                                const ForeignReading& how) {
  return DeepSpeedFolder(checkpoint, open, how).read();
}

}  // namespace bloomery
