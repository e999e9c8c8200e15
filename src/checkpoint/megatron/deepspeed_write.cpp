#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/megatron/deepspeed_files.h"
#include "checkpoint/megatron/zero_groups.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;
using Dict = PyValue::Dict;
using Kind = MegatronExporter::Kind;

constexpr std::string_view kEmbedding = "language_model.embedding.",
                           kEncoder = "language_model.encoder.", kFinal = "final_layernorm.";

// Where the pipeline keeps a tensor: its layer's number and its name there.
struct PipelinePlace {
  std::int64_t layer;
  std::string key;
};

class DeepSpeedWriter {
 public:
  DeepSpeedWriter(const MegatronExporter& model, fs::path folder)
      : model_(model), folder_(std::move(folder)) {}

  // One file for every state of every parameter, of a model that is not cut.
  void write_states() const {
    for (int stage = 0; stage < model_.layout().pipeline; ++stage) {
      for (const std::string& name : model_.names(stage)) {
        const fs::path place = folder_ / "zero" / parameter(name);
        fs::create_directories(place);
        write_torch_file(place / "fp32.pt", state_of(name, Kind::exact));
        for (const StateTensor& tensor : model_.states()) {
          write_torch_file(place / concat(tensor.foreign, ".pt"), state_of(name, Kind::of(tensor)));
        }
        write_torch_file(place / "step.pt", optimizer_steps());
      }
    }
    Dict common;
    for (auto& [key, value] : optimizer_state({})) {
      const std::string& text = std::get<std::string>(key.get());
      if (text == "base_optimizer_state") {
        common.emplace_back("param_groups", std::get<Dict>(value.get()).back().second);
      } else if (text != "param_slice_mappings" && text != "single_partition_of_fp32_groups") {
        common.emplace_back(key, value);
      }
    }
    write_torch_file(folder_ / "zero" / "optimizer_state.pt", common);
  }

  void write_models() const {
    fs::create_directories(folder_);
    for (int stage = 0; stage < model_.layout().pipeline; ++stage) {
      write_of_all_ranks([&](int rank) { return model_file(stage, rank); });
    }
  }

  void write() const {
    write_models();
    for (int stage = 0; stage < model_.layout().pipeline; ++stage) {
      model_.has_experts() ? write_experts(stage) : write_layers(stage);
      for (int data = 0; model_.has_states() && data < model_.layout().data(); ++data) {
        write_of_all_ranks([&](int rank) {
          return optimizer_file({.stage = stage, .tensor = rank, .data = data});
        });
      }
    }
  }

 private:
  PipelinePlace place(const std::string& name) const {
    // Behind the layers of a mixture one adds up its losses.
    const std::int64_t end =
        model_.record().model.num_layers + (model_.has_experts() ? 1 : 0) + kFirstPipelineLayer;
    if (name.starts_with(kEmbedding)) {
      return {1, name.substr(kEmbedding.size())};
    }
    if (const auto layer = layer_of_name(name)) {
      const std::string prefix = concat(kEncoder, "layers.", *layer, ".");
      return {*layer + kFirstPipelineLayer, name.substr(prefix.size())};
    }
    if (name.starts_with(kEncoder)) {
      return {end, name.substr(kEncoder.size() + kFinal.size())};
    }
    return {end + 1, "lm_head.weight"};
  }

  // As the module of the pipeline calls it.
  std::string parameter(const std::string& name) const {
    const PipelinePlace where = place(name);
    return where.layer == 1 && model_.tied() ? concat("tied_modules.embed.", where.key)
                                             : concat(where.layer, ".", where.key);
  }

  // Side by side: they hold parts of the same tensors.
  template <class File>
  void write_of_all_ranks(const File& file) const {
    std::vector<TorchFileToWrite> files;
    for (int rank = 0; rank < model_.layout().tensor; ++rank) {
      files.push_back(file(rank));
    }
    write_torch_files(files);
  }

  void write_layers(int stage) const {
    std::map<std::int64_t, std::vector<std::string>> layers;
    for (const std::string& name : model_.names(stage)) {
      layers[place(name).layer].push_back(name);
    }
    for (const auto& [layer, names] : layers) {
      write_of_all_ranks([&](int rank) -> TorchFileToWrite {
        Dict tensors;
        for (const std::string& name : names) {
          tensors.emplace_back(place(name).key, model_.tensor(name, rank, Kind::computed));
        }
        return {folder_ / layer_file(layer, rank), PyValue::Ordered{tensors}};
      });
    }
  }

  // One file for each expert, under all tensor ranks that have it on some data-parallel rank.
  // Layers with experts are counted within the stage; those of a layer are parts of one tensor.
  void write_experts(int stage) const {
    std::map<std::int64_t, std::vector<std::string>> layers;
    for (const std::string& name : model_.names(stage)) {
      if (expert_of_name(name)) {
        layers[*layer_of_name(name)].push_back(name);
      }
    }
    std::int64_t counted = 0;
    for (const auto& [layer, names] : layers) {
      std::map<std::pair<int, std::int64_t>, Dict> experts;  // by tensor rank and number
      for (int rank = 0; rank < model_.layout().tensor; ++rank) {
        for (const std::string& name : names) {
          if (held_somewhere(name, rank)) {
            experts[{rank, *expert_of_name(name)}].emplace_back(
                parameter(name), model_.tensor(name, rank, Kind::computed));
          }
        }
      }
      std::vector<TorchFileToWrite> files;
      for (const auto& [place, tensors] : experts) {
        files.push_back(
            {folder_ / concat("layer_", counted, "_expert_", place.second, "_mp_rank_",
                              two_digits(model_rank(stage, place.first)), "_model_states.pt"),
             tensors});
      }
      // Files are open side by side, and a process may have so many.
      constexpr std::size_t kOpenAtOnce = 256;
      for (std::size_t first = 0; first < files.size(); first += kOpenAtOnce) {
        const auto begin = files.begin() + static_cast<std::ptrdiff_t>(first);
        const std::size_t count = std::min(kOpenAtOnce, files.size() - first);
        write_torch_files({begin, begin + static_cast<std::ptrdiff_t>(count)});
      }
      ++counted;
    }
  }

  bool held_somewhere(const std::string& name, int rank) const {
    const ForeignLayout& layout = model_.layout();
    const std::int64_t all = model_.record().model.moe.experts_of(*layer_of_name(name));
    for (int data = 0; data < layout.data(); ++data) {
      const int expert_rank = expert_place(layout, {.tensor = rank, .data = data}).expert_rank;
      if (*expert_of_name(name) / (all / layout.expert) == expert_rank) {
        return true;
      }
    }
    return false;
  }

  int model_rank(int stage, int rank) const { return stage * model_.layout().tensor + rank; }

  // As a rank calls it, which counts its own experts alone.
  std::string local_parameter(const std::string& name) const {
    const auto expert = expert_of_name(name);
    if (!expert) {
      return parameter(name);
    }
    const std::int64_t all = model_.record().model.moe.experts_of(*layer_of_name(name));
    return with_expert(parameter(name), *expert % (all / model_.layout().expert));
  }

  PyValue optimizer_steps() const {
    return single_number(static_cast<float>(model_.optimizer_steps()));
  }

  PyValue state_of(const std::string& name, const Kind& kind) const {
    Dict state{{"param", model_.tensor(name, 0, kind)}};
    const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
    if (ends("word_embeddings.weight") || ends("output_layer.weight")) {
      state.emplace_back("vocab_tensor", true);
      state.emplace_back("cat_dim", 0);
    } else if (model_.record().model.mlp.gated() && name.find("dense_h_to_4h") != name.npos) {
      state.emplace_back("cat_dim", 0);
      state.emplace_back("param_n_sub_params", 2);
    } else if (ends("self_attention.dense.weight") || ends("dense_4h_to_h.weight")) {
      state.emplace_back("cat_dim", 1);
    } else if (name.find("query_key_value") != name.npos ||
               name.find("dense_h_to_4h") != name.npos) {
      state.emplace_back("cat_dim", 0);
    }
    return state;
  }

  Dict optimizer_state(const ZeroRank& rank) const {
    const bool fp16 = model_.record().dtype == DType::fp16;
    Dict state;
    PyValue::List groups, exact, paddings, counts, mappings;
    std::int64_t index = 0;
    for (const ZeroShare& share : zero_shares(model_, rank)) {
      const auto flat = [&](const Kind& kind, bool padded) {
        return flat_share(model_, share, rank.tensor, kind, padded);
      };
      Dict each{{"step", optimizer_steps()}};
      for (const StateTensor& tensor : model_.states()) {
        each.emplace_back(tensor.foreign, flat(Kind::of(tensor), true));
      }
      state.emplace_back(index, each);
      groups.emplace_back(model_.parameter_group(share.decays, share.experts, {index++}));
      exact.push_back(flat(Kind::exact, false));
      paddings.emplace_back(share.padding());
      counts.emplace_back(share.ranks);
      Dict places;
      for (const ShareFragment& part : fragments(model_, share)) {
        places.emplace_back(local_parameter(part.name),
                            PyValue::Object{{"deepspeed.utils.tensor_fragment", "fragment_address"},
                                            {{"numel", part.count}, {"start", part.start}}});
      }
      mappings.emplace_back(PyValue::Ordered{places});
    }
    Dict all{{"clip_grad", model_.option("clip-grad", 1.0)},
             {"base_optimizer_state", Dict{{"state", state}, {"param_groups", groups}}},
             {"single_partition_of_fp32_groups", exact},
             {"group_paddings", paddings},
             {"partition_count", counts},
             {"ds_version", "0.19.8"},
             {"param_slice_mappings", mappings},
             {"zero_stage", 1},
             {"dynamic_loss_scale", fp16},
             {"overflow", false}};
    all.emplace_back("loss_scaler", fp16 ? loss_scaler() : no_scaler());
    return all;
  }

  static PyValue no_scaler() {
    return PyValue::Object{{"deepspeed.runtime.fp16.loss_scaler", "LossScaler"},
                           {{"cur_scale", 1.0}, {"dynamic", false}}};
  }

  PyValue loss_scaler() const {
    const RunState::Scale& scale = model_.run()->loss_scale;
    return PyValue::Object{{"deepspeed.runtime.fp16.loss_scaler", "DynamicLossScaler"},
                           {{"cur_scale", scale.scale},
                            {"cur_iter", model_.iteration()},
                            {"last_overflow_iter", model_.iteration() - scale.clean_steps - 1},
                            {"scale_factor", 2.0},
                            {"scale_window", model_.option("loss-scale-window", 1000)},
                            {"min_scale", model_.option("min-loss-scale", 1)},
                            {"delayed_shift", model_.option("hysteresis", 2)},
                            {"cur_hysteresis", scale.tolerance_left},
                            {"consecutive_hysteresis", false},
                            {"raise_error_at_min_scale", true},
                            {"dtype", PyValue::Global{"torch", "float16"}}}};
  }

  PyValue parameter_shapes(int stage, int rank) const {
    PyValue::List groups;
    for (const ZeroShare& share : zero_shares(model_, {.stage = stage, .tensor = rank})) {
      Dict shapes;
      for (const std::string& name : share.names) {
        const Shape shape = model_.tensor(name, rank, Kind::exact).shape;
        PyValue::List extents;
        for (int i = 0; i < shape.rank(); ++i) {
          extents.emplace_back(shape[i]);
        }
        shapes.emplace_back(local_parameter(name),
                            PyValue::Call{{"torch", "Size"}, {PyValue::Tuple{extents}}});
      }
      groups.emplace_back(PyValue::Ordered{shapes});
    }
    return groups;
  }

  // With experts all else is here; else it is in the files of the layers.
  PyValue module(int stage, int rank) const {
    if (!model_.has_experts()) {
      return {};
    }
    Dict tensors;
    for (const ZeroShare& share : zero_shares(model_, {.stage = stage, .tensor = rank})) {
      for (const std::string& name : share.names) {
        if (!share.experts) {
          tensors.emplace_back(parameter(name), model_.tensor(name, rank, Kind::computed));
        }
      }
    }
    return PyValue::Ordered{tensors};
  }

  PyValue experts_of_layers(int stage) const {
    PyValue::List counts;
    const std::int64_t layers = model_.layers_per_stage();
    for (std::int64_t layer = stage * layers; layer < (stage + 1) * layers; ++layer) {
      if (const auto count = model_.record().model.moe.experts_of(layer); count > 1) {
        counts.emplace_back(count);
      }
    }
    return counts;
  }

  TorchFileToWrite model_file(int stage, int rank) const {
    const std::string mp = concat("mp_rank_", two_digits(model_rank(stage, rank)));
    const std::int64_t consumed = model_.run() != nullptr ? model_.run()->consumed_samples : 0;
    Dict file{{"module", module(stage, rank)},
              {"buffer_names", PyValue::List{}},
              {"optimizer", PyValue()},
              {"param_shapes", parameter_shapes(stage, rank)},
              {"frozen_param_shapes", PyValue()},
              {"shared_params", Dict{}},
              {"frozen_param_fragments", PyValue()},
              {"lr_scheduler", model_.scheduler()},
              {"data_sampler", PyValue()},
              {"random_ltd", PyValue()},
              {"sparse_tensor_module_names", PyValue::List{}},
              {"skipped_steps", model_.skipped_steps()},
              {"global_steps", model_.iteration()},
              {"global_samples", consumed},
              {"dp_world_size", model_.layout().data()},
              {"mp_world_size", model_.layout().tensor * model_.layout().pipeline},
              {"ds_config", Dict{}},
              {"ds_version", "0.19.8"}};
    if (model_.has_experts()) {
      file.emplace_back("num_experts", experts_of_layers(stage));
    }
    model_.add_client_state(file, true);
    return {folder_ / concat(mp, "_model_states.pt"), file};
  }

  TorchFileToWrite optimizer_file(const ZeroRank& rank) const {
    const std::string prefix = model_.record().dtype == DType::bf16 ? "bf16_" : "";
    return {folder_ / concat(prefix, "zero_pp_rank_", rank.data, "_mp_rank_",
                             two_digits(model_rank(rank.stage, rank.tensor)), "_optim_states.pt"),
            Dict{{"optimizer_state_dict", optimizer_state(rank)},
                 {"ds_config", Dict{}},
                 {"ds_version", "0.19.8"}}};
  }

  const MegatronExporter& model_;
  fs::path folder_;
};

}  // namespace

void write_deepspeed(const ModelSource& source, const fs::path& folder,
                     const ForeignLayout& layout) {
  const MegatronExporter model(source, layout);
  check(model.is_decoder(), "DeepSpeed's pipeline has no models of the family ",
        model.record().model.family, "; convert --to megatron");
  const std::string tag = concat("global_step", model.iteration());
  DeepSpeedWriter(model, folder / tag).write();
  write_file(folder / "latest", tag);
  write_file(folder / "latest_checkpointed_iteration.txt", std::to_string(model.iteration()));
}

void write_universal(const ModelSource& source, const fs::path& folder,
                     const ForeignLayout& layout) {
  const MegatronExporter cut(source, layout);
  check(cut.is_decoder() && !cut.has_experts(),
        "DeepSpeed's universal checkpoints are of decoders without experts; convert --to deepspeed "
        "or "
        "megatron");
  check(cut.has_states(), source.folder().string(),
        " has no state of the optimizer, which a universal checkpoint is made of");
  DeepSpeedWriter(cut, folder).write_models();
  const MegatronExporter whole(source, {.tensor = 1, .pipeline = layout.pipeline, .padded = false});
  DeepSpeedWriter(whole, folder).write_states();
}

}  // namespace bloomery
